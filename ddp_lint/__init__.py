"""A linter that understands PyTorch training programs."""

__version__ = "0.1.0"
