"""A small convolutional classifier."""

from __future__ import annotations

import torch
from torch import nn


def block(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2),
    )


class SmallNet(nn.Module):
    """Images of shape (N, 3, H, W) to logits of shape (N, classes)."""

    def __init__(self, classes: int, width: int = 8) -> None:
        super().__init__()
        self.features = nn.Sequential(
            block(3, width),
            block(width, 2 * width),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
        )
        self.head = nn.Linear(2 * width, classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.head(self.features(images))
