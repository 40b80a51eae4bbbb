"""`torch.cuda.amp` is deprecated: it warns, and without a GPU it switches itself off.

Counted: the FutureWarnings of one step.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch.nn.functional import cross_entropy
from torch.optim import SGD
from torch.utils.data import DataLoader

from .context import device
from .harness import Check, Seen
from .small import agreed, make_dataset, make_model

SETTINGS = {"batch": [16, 32], "amp": "float16"}


def bad() -> Seen:
    gpu = device()
    model = make_model().to(gpu)
    optimizer = SGD(model.parameters(), lr=0.1)
    loader = DataLoader(make_dataset(16), batch_size=16)
    with counted_warnings() as told:
        scaler = torch.cuda.amp.GradScaler()  # DDP211
        for inputs, targets in loader:
            optimizer.zero_grad()
            with torch.cuda.amp.autocast():  # DDP211
                loss = cross_entropy(model(inputs.to(gpu)), targets.to(gpu))
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
    return {"warnings": len(told)}


def good() -> Seen:
    gpu = device()
    model = make_model().to(gpu)
    optimizer = SGD(model.parameters(), lr=0.1)
    loader = DataLoader(make_dataset(16), batch_size=16)
    with counted_warnings() as told:
        scaler = torch.amp.GradScaler(gpu.type)
        for inputs, targets in loader:
            optimizer.zero_grad()
            with torch.autocast(gpu.type, torch.float16):
                loss = cross_entropy(model(inputs.to(gpu)), targets.to(gpu))
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
    return {"warnings": len(told)}


@contextmanager
def counted_warnings() -> Iterator[list[str]]:
    """The deprecations that torch warns of, each time."""
    told: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield told
    told += [str(one.message) for one in caught if issubclass(one.category, FutureWarning)]


def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]:
    title = "deprecations warned of"
    yield Check(title, agreed(one["warnings"] for one in bad), "==", 2, of="bad")
    yield Check(title, agreed(one["warnings"] for one in good), "==", 0, of="good")
