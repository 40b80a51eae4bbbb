"""Keyword spotting on spectrograms of shape (N, 1, 64, 101)."""

from torch import nn


class Spotter(nn.Sequential):
    def __init__(self, keywords):
        super().__init__(
            nn.Conv2d(1, 64, (8, 20), stride=2),
            nn.ReLU(),
            nn.Conv2d(64, 64, 4, stride=2),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(64, keywords),
        )
