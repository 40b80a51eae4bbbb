"""A print in the loop on every rank: each line comes once per rank.

Counted: the lines that all ranks print together.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from unittest.mock import patch

import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.optim import SGD
from torch.utils.data import DataLoader, DistributedSampler

from .context import device, world_size
from .harness import Check, Seen, needs
from .small import make_dataset, make_model

NEEDS = needs(ranks=2)
STEPS = 20
EVERY = 5
SETTINGS = {"batch": [8, 32], "steps": STEPS, "printed": f"every {EVERY} steps"}


def bad() -> Seen:
    gpu = device()
    model = DistributedDataParallel(make_model().to(gpu))
    optimizer = SGD(model.parameters(), lr=0.1)
    dataset = make_dataset(8 * STEPS * world_size())
    loader = DataLoader(dataset, batch_size=8, sampler=DistributedSampler(dataset))
    with counted_lines() as lines:
        for step, (inputs, targets) in enumerate(loader):
            optimizer.zero_grad()
            loss = cross_entropy(model(inputs.to(gpu)), targets.to(gpu))
            loss.backward()
            optimizer.step()
            if step % EVERY == 0:
                print(f"step {step} of {len(loader)}")  # DDP509
    return {"lines": lines[0]}


def good() -> Seen:
    gpu = device()
    model = DistributedDataParallel(make_model().to(gpu))
    optimizer = SGD(model.parameters(), lr=0.1)
    dataset = make_dataset(8 * STEPS * world_size())
    loader = DataLoader(dataset, batch_size=8, sampler=DistributedSampler(dataset))
    with counted_lines() as lines:
        for step, (inputs, targets) in enumerate(loader):
            optimizer.zero_grad()
            loss = cross_entropy(model(inputs.to(gpu)), targets.to(gpu))
            loss.backward()
            optimizer.step()
            if step % EVERY == 0 and dist.get_rank() == 0:
                print(f"step {step} of {len(loader)}")
    return {"lines": lines[0]}


@contextmanager
def counted_lines() -> Iterator[list[int]]:
    """Count the lines that this process prints; they still come out."""
    count = [0]
    write = sys.stdout.write

    def counting(text: str) -> int:
        count[0] += text.count("\n")
        return write(text)

    with patch.object(sys.stdout, "write", counting):
        yield count


def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]:
    title = "lines per message"
    messages = STEPS // EVERY
    yield Check(title, sum(one["lines"] for one in bad) / messages, "==", len(bad), of="bad")
    yield Check(title, sum(one["lines"] for one in good) / messages, "==", 1, of="good")
