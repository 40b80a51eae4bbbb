"""Without `set_epoch` each epoch deals the order of the first one.

Noted: which samples the dataset of each rank was asked for, in order, over three epochs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.optim import SGD
from torch.utils.data import DataLoader, DistributedSampler

from .context import device
from .harness import Check, Seen
from .probes import digest
from .small import Noted, make_model

EPOCHS = 3
SETTINGS = {"batch": [16, 32], "samples": 128, "epochs": EPOCHS}


def bad() -> Seen:
    gpu = device()
    dataset = Noted(128)
    sampler: DistributedSampler[Any] = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=16, sampler=sampler)
    model = DistributedDataParallel(make_model().to(gpu))
    optimizer = SGD(model.parameters(), lr=0.1)
    for _ in range(EPOCHS):  # DDP301
        for inputs, targets in loader:
            optimizer.zero_grad()
            loss = cross_entropy(model(inputs.to(gpu)), targets.to(gpu))
            loss.backward()
            optimizer.step()
    return orders(dataset)


def good() -> Seen:
    gpu = device()
    dataset = Noted(128)
    sampler: DistributedSampler[Any] = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=16, sampler=sampler)
    model = DistributedDataParallel(make_model().to(gpu))
    optimizer = SGD(model.parameters(), lr=0.1)
    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)
        for inputs, targets in loader:
            optimizer.zero_grad()
            loss = cross_entropy(model(inputs.to(gpu)), targets.to(gpu))
            loss.backward()
            optimizer.step()
    return orders(dataset)


def orders(dataset: Noted) -> Seen:
    epochs = dataset.epochs(EPOCHS)
    return {
        "orders": epochs,
        "digests": {
            f"order of epoch {epoch}": digest(order) for epoch, order in enumerate(epochs)
        },
    }


def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]:
    title = "different orders among three epochs"
    different = [len({tuple(order) for order in one["orders"]}) for one in bad]
    yield Check(title, max(different), "==", 1, of="bad")
    different = [len({tuple(order) for order in one["orders"]}) for one in good]
    yield Check(title, min(different), "==", EPOCHS, of="good")
    title = "samples one rank sees in three epochs"
    yield Check(title, max(_seen(one) for one in bad), "==", 128 // len(bad), of="bad")
    if len(good) > 1:
        yield Check(title, min(_seen(one) for one in good), ">", 128 // len(good), of="good")


def _seen(one: Seen) -> int:
    return len({index for order in one["orders"] for index in order})
