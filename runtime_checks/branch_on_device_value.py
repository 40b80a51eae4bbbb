"""A branch on a device tensor: Python waits for the value on every step.

Counted: the values that the host takes from the device in ten steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.optim import SGD
from torch.utils.data import DataLoader, DistributedSampler

from .context import device, world_size
from .harness import Check, Seen
from .probes import host_reads
from .small import agreed, make_dataset, make_model

STEPS = 10
SETTINGS = {"batch": [16, 32], "steps": STEPS}


def bad() -> Seen:
    gpu = device()
    model = DistributedDataParallel(make_model().to(gpu))
    optimizer = SGD(model.parameters(), lr=0.1)
    dataset = make_dataset(16 * STEPS * world_size())
    sampler: DistributedSampler[Any] = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=16, sampler=sampler, pin_memory=True)
    not_finite = 0
    with host_reads() as reads:
        for inputs, targets in loader:
            inputs = inputs.to(gpu, non_blocking=True)
            targets = targets.to(gpu, non_blocking=True)
            optimizer.zero_grad()
            loss = cross_entropy(model(inputs), targets)
            if not torch.isfinite(loss):  # DDP102
                not_finite += 1
            loss.backward()
            optimizer.step()
    return {"reads": reads.count, "not finite": not_finite}


def good() -> Seen:
    gpu = device()
    model = DistributedDataParallel(make_model().to(gpu))
    optimizer = SGD(model.parameters(), lr=0.1)
    dataset = make_dataset(16 * STEPS * world_size())
    sampler: DistributedSampler[Any] = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=16, sampler=sampler, pin_memory=True)
    not_finite = torch.zeros((), device=gpu, dtype=torch.int64)
    with host_reads() as reads:
        for inputs, targets in loader:
            inputs = inputs.to(gpu, non_blocking=True)
            targets = targets.to(gpu, non_blocking=True)
            optimizer.zero_grad()
            loss = cross_entropy(model(inputs), targets)
            not_finite += ~torch.isfinite(loss)
            loss.backward()
            optimizer.step()
    return {"reads": reads.count, "not finite": not_finite.item()}


def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]:
    title = "device reads per step"
    yield Check(title, agreed(one["reads"] / STEPS for one in bad), "==", 1.0, of="bad")
    yield Check(title, agreed(one["reads"] / STEPS for one in good), "==", 0.0, of="good")
