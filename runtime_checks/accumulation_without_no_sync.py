"""Accumulation without `no_sync`: every micro-batch sends all gradients.

Counted: the bytes of the gradients that were all-reduced.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext

import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.optim import SGD
from torch.utils.data import DataLoader, DistributedSampler

from .context import device
from .harness import Check, Seen, needs
from .probes import collectives
from .small import make_dataset, make_model

NEEDS = needs(ranks=2)
WINDOW = 4
WINDOWS = 5
SETTINGS = {"batch": [8, 32], "micro-batches per step": WINDOW, "steps": WINDOWS}


def bad() -> Seen:
    gpu = device()
    model = DistributedDataParallel(make_model().to(gpu))
    optimizer = SGD(model.parameters(), lr=0.1)
    dataset = make_dataset(samples())
    loader = DataLoader(dataset, batch_size=8, sampler=DistributedSampler(dataset))
    with collectives(model) as traffic:
        for step, (inputs, targets) in enumerate(loader):  # DDP504
            loss = cross_entropy(model(inputs.to(gpu)), targets.to(gpu)) / WINDOW
            loss.backward()
            if (step + 1) % WINDOW == 0:
                optimizer.step()
                optimizer.zero_grad()
    return {"count": traffic.count, "bytes": traffic.bytes, "of a model": gradient_bytes(model)}


def good() -> Seen:
    gpu = device()
    model = DistributedDataParallel(make_model().to(gpu))
    optimizer = SGD(model.parameters(), lr=0.1)
    dataset = make_dataset(samples())
    loader = DataLoader(dataset, batch_size=8, sampler=DistributedSampler(dataset))
    with collectives(model) as traffic:
        for step, (inputs, targets) in enumerate(loader):
            last = (step + 1) % WINDOW == 0
            with nullcontext() if last else model.no_sync():
                loss = cross_entropy(model(inputs.to(gpu)), targets.to(gpu)) / WINDOW
                loss.backward()
            if last:
                optimizer.step()
                optimizer.zero_grad()
    return {"count": traffic.count, "bytes": traffic.bytes, "of a model": gradient_bytes(model)}


def samples() -> int:
    """As many as give every rank whole windows."""
    return 8 * WINDOW * WINDOWS * dist.get_world_size()


def gradient_bytes(model: DistributedDataParallel) -> int:
    return sum(each.numel() * each.element_size() for each in model.parameters())


def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]:
    title = "gradients sent per optimizer step, in models"
    # DDP itself adds a few bytes once, when it has learnt the order of its buckets.
    yield Check(title, max(map(_sent, bad)), "close", WINDOW, of="bad", rel=0.01)
    yield Check(title, max(map(_sent, good)), "close", 1, of="good", rel=0.01)


def _sent(one: Seen) -> float:
    return float(one["bytes"] / one["of a model"] / WINDOWS)
