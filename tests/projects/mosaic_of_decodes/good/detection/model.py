"""Boxes on a grid."""

import torch
from torch import nn


class GridDetector(nn.Module):
    """(N, 3, 640, 640) to (N, 5, 20, 20): box and objectness for each cell."""

    def __init__(self, width=32):
        super().__init__()
        layers = []
        channels = 3
        for _ in range(5):
            layers += [nn.Conv2d(channels, width, 3, stride=2, padding=1), nn.SiLU()]
            channels = width
        self.body = nn.Sequential(*layers)
        self.head = nn.Conv2d(width, 5, 1)

    def forward(self, images):
        return self.head(self.body(images))


def detection_loss(predictions, targets):
    boxes = torch.nn.functional.smooth_l1_loss(predictions[:, :4], targets[:, :4])
    objects = torch.nn.functional.binary_cross_entropy_with_logits(
        predictions[:, 4], targets[:, 4]
    )
    return boxes + objects
