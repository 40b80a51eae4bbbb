"""`empty_cache()` on every step: the driver is asked for the same memory again at the next one.

Counted: the segments that the allocator gets from the driver in ten steps, after a first one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.optim import SGD
from torch.utils.data import DataLoader

from .context import device
from .harness import Check, Seen, needs
from .small import make_dataset, make_model

NEEDS = needs(cuda=True)
STEPS = 10
# Large enough that activations do not share a segment with the parameters, which stay.
BATCH = 16384
SETTINGS = {"batch": [BATCH, 32], "steps": STEPS}


def bad() -> Seen:
    gpu = device()
    model = make_model().to(gpu)
    optimizer = SGD(model.parameters(), lr=0.1)
    loader = DataLoader(make_dataset(BATCH * STEPS), batch_size=BATCH)
    warm_up(model)
    before = segments()
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = cross_entropy(model(inputs.to(gpu)), targets.to(gpu))
        loss.backward()
        optimizer.step()
        torch.cuda.empty_cache()  # DDP104
    return {"segments": segments() - before}


def good() -> Seen:
    gpu = device()
    model = make_model().to(gpu)
    optimizer = SGD(model.parameters(), lr=0.1)
    loader = DataLoader(make_dataset(BATCH * STEPS), batch_size=BATCH)
    warm_up(model)
    before = segments()
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = cross_entropy(model(inputs.to(gpu)), targets.to(gpu))
        loss.backward()
        optimizer.step()
    return {"segments": segments() - before}


def warm_up(model: nn.Module) -> None:
    """One forward and backward, so that libraries have their workspaces."""
    inputs, targets = make_dataset(BATCH)[:]
    cross_entropy(model(inputs.to(device())), targets.to(device())).backward()


def segments() -> int:
    """How many segments the driver has been asked for so far."""
    return int(torch.cuda.memory_stats()["segment.all.allocated"])


def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]:
    title = "segments asked of the driver, per step"
    yield Check(title, min(one["segments"] for one in bad) / STEPS, ">=", 0.9, of="bad")
    yield Check(title, max(one["segments"] for one in good) / STEPS, "<=", 0.5, of="good")
