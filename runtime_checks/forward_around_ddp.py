"""A loss through `model.module` reduces no gradient: each rank trains a model of its own.

Counted: the all-reduces of the loop.  Compared: the parameters of the ranks at its end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.optim import SGD
from torch.utils.data import DataLoader, DistributedSampler

from .context import device
from .harness import Check, Seen, needs
from .probes import collectives, digest
from .small import make_dataset, make_model, parameters_of

NEEDS = needs(ranks=2)
SETTINGS = {"batch": [16, 32], "steps": 8}


def bad() -> Seen:
    gpu = device()
    model = DistributedDataParallel(make_model().to(gpu))
    optimizer = SGD(model.parameters(), lr=0.1)
    dataset = make_dataset(256)
    loader = DataLoader(dataset, batch_size=16, sampler=DistributedSampler(dataset))
    with collectives(model) as traffic:
        for inputs, targets in loader:
            optimizer.zero_grad()
            outputs = model.module(inputs.to(gpu))  # DDP503
            loss = cross_entropy(outputs, targets.to(gpu))
            loss.backward()
            optimizer.step()
    return {"all-reduces": traffic.count, "parameters": digest(parameters_of(model))}


def good() -> Seen:
    gpu = device()
    model = DistributedDataParallel(make_model().to(gpu))
    optimizer = SGD(model.parameters(), lr=0.1)
    dataset = make_dataset(256)
    loader = DataLoader(dataset, batch_size=16, sampler=DistributedSampler(dataset))
    with collectives(model) as traffic:
        for inputs, targets in loader:
            optimizer.zero_grad()
            outputs = model(inputs.to(gpu))
            loss = cross_entropy(outputs, targets.to(gpu))
            loss.backward()
            optimizer.step()
    return {"all-reduces": traffic.count, "parameters": digest(parameters_of(model))}


def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]:
    title = "different parameters among the ranks"
    yield Check(title, len({one["parameters"] for one in bad}), "==", len(bad), of="bad")
    yield Check(title, len({one["parameters"] for one in good}), "==", 1, of="good")
    title = "all-reduces"
    yield Check(title, max(one["all-reduces"] for one in bad), "==", 0, of="bad")
    yield Check(
        title, min(one["all-reduces"] for one in good), ">=", 256 // 16 // len(good), of="good"
    )
