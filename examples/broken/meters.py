"""Running averages for the log."""

from __future__ import annotations

import torch


class AverageMeter:
    def __init__(self, name: str) -> None:
        self.name = name
        self.last = 0.0
        self.sum = 0.0
        self.count = 0

    def update(self, value: float | torch.Tensor, count: int = 1) -> None:
        if isinstance(value, torch.Tensor):
            value = value.item()  # DDP101
        self.last = value
        self.sum += value * count
        self.count += count

    @property
    def average(self) -> float:
        return self.sum / max(self.count, 1)

    def __str__(self) -> str:
        return f"{self.name} {self.last:.4f} ({self.average:.4f})"
