"""A pinned batch moved without `non_blocking`: the host waits for every copy.

Counted: the times that CUDA made the host wait.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torch.nn.functional import cross_entropy
from torch.optim import SGD
from torch.utils.data import DataLoader

from .context import device
from .harness import Check, Seen, needs
from .probes import host_reads
from .small import make_dataset, make_model

NEEDS = needs(cuda=True)
STEPS = 10
SETTINGS = {"batch": [16, 32], "steps": STEPS}


def bad() -> Seen:
    gpu = device()
    model = make_model().to(gpu)
    optimizer = SGD(model.parameters(), lr=0.1)
    loader = DataLoader(make_dataset(16 * STEPS), batch_size=16, pin_memory=True)
    with host_reads() as reads:
        for inputs, targets in loader:
            inputs = inputs.to(gpu)  # DDP105
            targets = targets.to(gpu)
            optimizer.zero_grad()
            loss = cross_entropy(model(inputs), targets)
            loss.backward()
            optimizer.step()
    return {"waits": reads.count}


def good() -> Seen:
    gpu = device()
    model = make_model().to(gpu)
    optimizer = SGD(model.parameters(), lr=0.1)
    loader = DataLoader(make_dataset(16 * STEPS), batch_size=16, pin_memory=True)
    with host_reads() as reads:
        for inputs, targets in loader:
            inputs = inputs.to(gpu, non_blocking=True)
            targets = targets.to(gpu, non_blocking=True)
            optimizer.zero_grad()
            loss = cross_entropy(model(inputs), targets)
            loss.backward()
            optimizer.step()
    return {"waits": reads.count}


def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]:
    title = "waits of the host, per step"
    yield Check(title, min(one["waits"] for one in bad) / STEPS, ">=", 2, of="bad")
    yield Check(title, max(one["waits"] for one in good) / STEPS, "==", 0, of="good")
