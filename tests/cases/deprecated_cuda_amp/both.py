"""Works with old and new versions: the old name is only the way out."""

import torch

try:
    from torch.amp import GradScaler
except ImportError:
    from torch.cuda.amp import GradScaler

if hasattr(torch, "amp") and hasattr(torch.amp, "custom_fwd"):
    custom_fwd = torch.amp.custom_fwd(device_type="cuda")
else:
    custom_fwd = torch.cuda.amp.custom_fwd

__all__ = ["GradScaler", "custom_fwd"]
