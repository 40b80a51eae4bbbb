"""A barrier on every step: all ranks wait for the slowest one, every time.

Counted: the barriers in ten steps.  The gradients' all-reduce keeps the ranks together anyway.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.optim import SGD
from torch.utils.data import DataLoader, DistributedSampler

from .context import device, world_size
from .harness import Check, Seen
from .probes import collectives, digest
from .small import make_dataset, make_model, parameters_of

STEPS = 10
SETTINGS = {"batch": [16, 32], "steps": STEPS}
NOT_COVERED = ("torch.cuda.synchronize(): it stops the host the same way, on one rank",)


def bad() -> Seen:
    gpu = device()
    model = DistributedDataParallel(make_model().to(gpu))
    optimizer = SGD(model.parameters(), lr=0.1)
    dataset = make_dataset(16 * STEPS * world_size())
    loader = DataLoader(dataset, batch_size=16, sampler=DistributedSampler(dataset))
    with collectives() as traffic:
        for inputs, targets in loader:
            optimizer.zero_grad()
            loss = cross_entropy(model(inputs.to(gpu)), targets.to(gpu))
            loss.backward()
            optimizer.step()
            dist.barrier()  # DDP103
    return {"barriers": traffic.other["barrier"], "parameters": digest(parameters_of(model))}


def good() -> Seen:
    gpu = device()
    model = DistributedDataParallel(make_model().to(gpu))
    optimizer = SGD(model.parameters(), lr=0.1)
    dataset = make_dataset(16 * STEPS * world_size())
    loader = DataLoader(dataset, batch_size=16, sampler=DistributedSampler(dataset))
    with collectives() as traffic:
        for inputs, targets in loader:
            optimizer.zero_grad()
            loss = cross_entropy(model(inputs.to(gpu)), targets.to(gpu))
            loss.backward()
            optimizer.step()
    return {"barriers": traffic.other["barrier"], "parameters": digest(parameters_of(model))}


def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]:
    title = "barriers per step"
    yield Check(title, min(one["barriers"] for one in bad) / STEPS, "==", 1, of="bad")
    yield Check(title, max(one["barriers"] for one in good) / STEPS, "==", 0, of="good")
    title = "different parameters among the ranks, with or without"
    parameters = {one["parameters"] for one in (*bad, *good)}
    yield Check(title, len(parameters), "==", 1, of="good")
