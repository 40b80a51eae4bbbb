"""A prefetcher that keeps one batch back and forgets to hand out the last one.

Counted: the batches that arrive, over two epochs, from a loader of three, of one and of none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import torch
from torch.nn.functional import cross_entropy
from torch.optim import SGD
from torch.utils.data import DataLoader, Subset

from .context import device
from .harness import Check, Seen
from .small import agreed, make_dataset, make_model

Batch = Sequence[torch.Tensor]
SETTINGS = {"batch": [4, 32], "samples": [12, 4, 0], "epochs": 2}


def keep_one_back(loader: Iterable[Batch]) -> Iterator[Batch]:
    """The next batch is on its way while this one is worked on; the last one never leaves."""
    ready = None
    for inputs, targets in loader:  # DDP108
        coming = [
            inputs.to(device()),
            targets.to(device()),
        ]
        if ready is not None:
            yield ready
        ready = coming


def hand_out_all(loader: Iterable[Batch]) -> Iterator[Batch]:
    """The next batch is on its way while this one is worked on."""
    ready = None
    for inputs, targets in loader:
        coming = [
            inputs.to(device()),
            targets.to(device()),
        ]
        if ready is not None:
            yield ready
        ready = coming
    if ready is not None:
        yield ready


def bad() -> Seen:
    model = make_model().to(device())
    optimizer = SGD(model.parameters(), lr=0.1)
    arrived = {}
    for samples in (12, 4, 0):
        loader = DataLoader(Subset(make_dataset(12), range(samples)), batch_size=4)
        batches = 0
        for _ in range(2):
            for inputs, targets in keep_one_back(loader):
                optimizer.zero_grad()
                cross_entropy(model(inputs), targets).backward()
                optimizer.step()
                batches += 1
        arrived[f"{samples} samples"] = batches
    return {"arrived": arrived}


def good() -> Seen:
    model = make_model().to(device())
    optimizer = SGD(model.parameters(), lr=0.1)
    arrived = {}
    for samples in (12, 4, 0):
        loader = DataLoader(Subset(make_dataset(12), range(samples)), batch_size=4)
        batches = 0
        for _ in range(2):
            for inputs, targets in hand_out_all(loader):
                optimizer.zero_grad()
                cross_entropy(model(inputs), targets).backward()
                optimizer.step()
                batches += 1
        arrived[f"{samples} samples"] = batches
    return {"arrived": arrived}


def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]:
    # Two epochs of three batches, of one batch, of none.
    for samples, arrives, there in ("12", 4, 6), ("4", 0, 2), ("0", 0, 0):
        title = f"batches that arrive from {samples} samples"
        count = agreed(one["arrived"][f"{samples} samples"] for one in bad)
        yield Check(title, count, "==", arrives, of="bad")
        count = agreed(one["arrived"][f"{samples} samples"] for one in good)
        yield Check(title, count, "==", there, of="good")
