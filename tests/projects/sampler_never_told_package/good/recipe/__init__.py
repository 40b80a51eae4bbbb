"""A recipe in parts: what is trained on, and how."""
