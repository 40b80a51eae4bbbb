"""What the programs share."""

from tools import places

__all__ = ["places"]
