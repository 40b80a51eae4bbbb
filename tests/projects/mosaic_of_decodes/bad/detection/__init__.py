"""A small single-shot detector."""
