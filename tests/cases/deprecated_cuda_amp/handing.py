"""Imported for others: one file of this program calls it, and a list names another."""

from torch.cuda.amp import GradScaler  # DDP211
from torch.cuda.amp import autocast as cast_half  # DDP211
from torch.cuda.amp import custom_bwd

__all__ = ["cast_half"]
