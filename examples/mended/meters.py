"""Running averages for the log."""

from __future__ import annotations

import torch
import torch.distributed as dist


class AverageMeter:
    """A weighted mean that stays on the device until somebody reads it."""

    def __init__(self, device: torch.device) -> None:
        self.sum = torch.zeros((), device=device)
        self.count = torch.zeros((), device=device)

    def update(self, mean: torch.Tensor, count: int = 1) -> None:
        """Add a mean over ``count`` samples; the device is not waited for."""
        self.sum += mean.detach() * count
        self.count += count

    def compute(self) -> float:
        """The mean over all processes, which must all ask for it; waits for the device."""
        totals = torch.stack([self.sum, self.count])
        dist.all_reduce(totals)
        total, count = totals.tolist()
        return total / max(count, 1)
