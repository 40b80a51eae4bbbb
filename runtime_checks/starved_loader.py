"""Without workers the process that feeds the GPU also makes the samples, one after the other.

Counted: the samples that the training process makes itself.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import torch
from torch.nn.functional import mse_loss
from torch.optim import SGD
from torch.utils.data import DataLoader, Dataset

from .context import device
from .harness import Check, Seen
from .small import FEATURES, agreed, make_model

SAMPLES = 32
SETTINGS = {"batch": [8, FEATURES], "samples": SAMPLES, "workers": 1, "start method": "fork"}
NOT_COVERED = ("how long the GPU waits: that depends on what a sample costs",)


class Made(Dataset[tuple[torch.Tensor, int]]):
    """Samples made when asked for, each with the process that made it."""

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        draw = torch.Generator().manual_seed(index)
        return torch.randn(FEATURES, generator=draw), os.getpid()


def bad() -> Seen:
    gpu = device()
    model = make_model().to(gpu)
    optimizer = SGD(model.parameters(), lr=0.1)
    loader = DataLoader(Made(), batch_size=8)  # DDP309
    makers = []
    for inputs, made_by in loader:
        optimizer.zero_grad()
        loss = mse_loss(model(inputs.to(gpu)), torch.zeros(8, 10, device=gpu))
        loss.backward()
        optimizer.step()
        makers.append(made_by)
    return {"made here": int((torch.cat(makers) == os.getpid()).sum())}


def good() -> Seen:
    gpu = device()
    model = make_model().to(gpu)
    optimizer = SGD(model.parameters(), lr=0.1)
    loader = DataLoader(Made(), batch_size=8, num_workers=1, multiprocessing_context="fork")
    makers = []
    for inputs, made_by in loader:
        optimizer.zero_grad()
        loss = mse_loss(model(inputs.to(gpu)), torch.zeros(8, 10, device=gpu))
        loss.backward()
        optimizer.step()
        makers.append(made_by)
    return {"made here": int((torch.cat(makers) == os.getpid()).sum())}


def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]:
    title = "samples made by the training process"
    yield Check(title, agreed(one["made here"] for one in bad), "==", SAMPLES, of="bad")
    yield Check(title, agreed(one["made here"] for one in good), "==", 0, of="good")
