"""Manual optimisation in parts."""
