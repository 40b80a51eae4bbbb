"""`find_unused_parameters=True` for a model that uses all of them: one more all-reduce a step.

Counted: the all-reduces of ten steps; the one that is more tells the ranks who used what.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.optim import SGD
from torch.utils.data import DataLoader, DistributedSampler

from .context import device, world_size
from .harness import Check, Seen, needs
from .probes import collectives
from .small import agreed, make_dataset, make_model

NEEDS = needs(ranks=2)
STEPS = 10
SETTINGS = {"batch": [8, 32], "steps": STEPS, "buckets": 1}
NOT_COVERED = ("how long the walk over the graph takes, which comes on top at every step",)


def bad() -> Seen:
    gpu = device()
    model = DistributedDataParallel(make_model().to(gpu), find_unused_parameters=True)  # DDP511
    optimizer = SGD(model.parameters(), lr=0.1)
    dataset = make_dataset(8 * STEPS * world_size())
    loader = DataLoader(dataset, batch_size=8, sampler=DistributedSampler(dataset))
    with collectives() as traffic:
        for inputs, targets in loader:
            optimizer.zero_grad()
            loss = cross_entropy(model(inputs.to(gpu)), targets.to(gpu))
            loss.backward()
            optimizer.step()
    return {"all-reduces": traffic.count}


def good() -> Seen:
    gpu = device()
    model = DistributedDataParallel(make_model().to(gpu))
    optimizer = SGD(model.parameters(), lr=0.1)
    dataset = make_dataset(8 * STEPS * world_size())
    loader = DataLoader(dataset, batch_size=8, sampler=DistributedSampler(dataset))
    with collectives() as traffic:
        for inputs, targets in loader:
            optimizer.zero_grad()
            loss = cross_entropy(model(inputs.to(gpu)), targets.to(gpu))
            loss.backward()
            optimizer.step()
    return {"all-reduces": traffic.count}


def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]:
    title = "all-reduces per step"
    yield Check(title, agreed(one["all-reduces"] / STEPS for one in bad), "==", 2, of="bad")
    yield Check(title, agreed(one["all-reduces"] / STEPS for one in good), "==", 1, of="good")
