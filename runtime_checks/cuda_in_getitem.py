"""A CUDA tensor made in a forked worker: CUDA refuses, and the loader raises.

Counted: the batches that arrive.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch.nn.functional import mse_loss
from torch.optim import SGD
from torch.utils.data import DataLoader, Dataset

from .context import device
from .harness import Check, Seen, needs
from .small import FEATURES, agreed, make_model

NEEDS = needs(cuda=True)
SETTINGS = {"batch": [16, FEATURES], "batches": 4, "num_workers": 1, "start method": "fork"}


class OnTheGpu(Dataset[torch.Tensor]):
    def __init__(self) -> None:
        self.rows = torch.randn(64, FEATURES)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.rows[index].cuda()  # DDP307


class OnTheHost(Dataset[torch.Tensor]):
    def __init__(self) -> None:
        self.rows = torch.randn(64, FEATURES)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.rows[index]


def bad() -> Seen:
    gpu = device()
    model = make_model().to(gpu)
    optimizer = SGD(model.parameters(), lr=0.1)
    loader = DataLoader(OnTheGpu(), batch_size=16, num_workers=1, multiprocessing_context="fork")
    arrived, raised = 0, ""
    try:
        for inputs in loader:
            optimizer.zero_grad()
            loss = mse_loss(model(inputs), torch.zeros(16, 10, device=gpu))
            loss.backward()
            optimizer.step()
            arrived += 1
    except RuntimeError as error:
        raised = str(error)
    return {"batches": arrived, "refused": "re-initialize CUDA in forked" in raised}


def good() -> Seen:
    gpu = device()
    model = make_model().to(gpu)
    optimizer = SGD(model.parameters(), lr=0.1)
    loader = DataLoader(OnTheHost(), batch_size=16, num_workers=1, multiprocessing_context="fork")
    arrived = 0
    for inputs in loader:
        optimizer.zero_grad()
        loss = mse_loss(model(inputs.to(gpu)), torch.zeros(16, 10, device=gpu))
        loss.backward()
        optimizer.step()
        arrived += 1
    return {"batches": arrived, "refused": False}


def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]:
    title = "batches that arrive"
    yield Check(title, agreed(one["batches"] for one in bad), "==", 0, of="bad")
    yield Check(title, agreed(one["batches"] for one in good), "==", 4, of="good")
    title = "ranks where CUDA refused"
    yield Check(title, sum(one["refused"] for one in bad), "==", len(bad), of="bad")
    yield Check(title, sum(one["refused"] for one in good), "==", 0, of="good")
