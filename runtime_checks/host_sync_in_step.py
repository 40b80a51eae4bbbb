"""`.item()` on every step: the host waits for the device once a step, for a number few read.

Counted: the values that the host takes from the device in twenty steps, and at which line.
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
from .pictures import Bars
from .probes import host_reads
from .small import agreed, make_dataset, make_model

STEPS = 20
EVERY = 10
SETTINGS = {"batch": [16, 32], "steps": STEPS, "logged": f"every {EVERY} steps"}
NOT_COVERED = ("how long a read waits: that depends on how far the host runs ahead",)


def bad() -> Seen:
    gpu = device()
    model = DistributedDataParallel(make_model().to(gpu))
    optimizer = SGD(model.parameters(), lr=0.1)
    dataset = make_dataset(16 * STEPS * world_size())
    sampler: DistributedSampler[Any] = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=16, sampler=sampler, pin_memory=True)
    running = 0.0
    with host_reads() as reads:
        for inputs, targets in loader:
            inputs = inputs.to(gpu, non_blocking=True)
            targets = targets.to(gpu, non_blocking=True)
            optimizer.zero_grad()
            loss = cross_entropy(model(inputs), targets)
            loss.backward()
            optimizer.step()
            running += loss.item()  # DDP101
    return {"reads": reads.count, "places": len(reads.places), "mean loss": running / STEPS}


def good() -> Seen:
    gpu = device()
    model = DistributedDataParallel(make_model().to(gpu))
    optimizer = SGD(model.parameters(), lr=0.1)
    dataset = make_dataset(16 * STEPS * world_size())
    sampler: DistributedSampler[Any] = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=16, sampler=sampler, pin_memory=True)
    running = 0.0
    total = torch.zeros((), device=gpu)
    with host_reads() as reads:
        for step, (inputs, targets) in enumerate(loader):
            inputs = inputs.to(gpu, non_blocking=True)
            targets = targets.to(gpu, non_blocking=True)
            optimizer.zero_grad()
            loss = cross_entropy(model(inputs), targets)
            loss.backward()
            optimizer.step()
            total += loss.detach()
            if (step + 1) % EVERY == 0:
                running += total.item()
                total.zero_()
    return {"reads": reads.count, "places": len(reads.places), "mean loss": running / STEPS}


def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]:
    title = "device reads per step"
    yield Check(title, agreed(one["reads"] / STEPS for one in bad), "==", 1.0, of="bad")
    reads = agreed(one["reads"] / STEPS for one in good)
    yield Check(title, reads, "==", 1 / EVERY, of="good")
    title = "lines that read"
    yield Check(title, agreed(one["places"] for one in bad), "==", 1, of="bad")
    yield Check(title, agreed(one["places"] for one in good), "==", 1, of="good")
    # The number that comes out is the same one.
    for rough, exact in zip(bad, good, strict=True):
        title = "mean loss"
        yield Check(title, exact["mean loss"], "close", rough["mean loss"], of="good", rel=1e-5)


def picture(bad: Sequence[Seen], good: Sequence[Seen]) -> Bars:
    return Bars(
        title="Values the host takes from the device, per step",
        y_label="reads per step",
        bars={"bad": bad[0]["reads"] / STEPS, "good": good[0]["reads"] / STEPS},
    )
