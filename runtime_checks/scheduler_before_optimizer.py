"""A scheduler stepped before the optimizer: the first learning rate is never used.

Noted: the learning rate that each ``optimizer.step()`` ran with.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torch.nn.functional import cross_entropy
from torch.optim import SGD
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader

from .context import device
from .harness import Check, Seen
from .small import Updates, make_dataset, make_model

SETTINGS = {"batch": [16, 32], "lr": 0.1, "gamma": 0.5}


def bad() -> Seen:
    gpu = device()
    model = make_model().to(gpu)
    optimizer = SGD(model.parameters(), lr=0.1)
    scheduler = StepLR(optimizer, step_size=1, gamma=0.5)
    loader = DataLoader(make_dataset(64), batch_size=16)
    updates = Updates(model, optimizer)
    for inputs, targets in loader:
        scheduler.step()  # DDP209
        optimizer.zero_grad()
        loss = cross_entropy(model(inputs.to(gpu)), targets.to(gpu))
        loss.backward()
        optimizer.step()
    return {"rates": updates.rates}


def good() -> Seen:
    gpu = device()
    model = make_model().to(gpu)
    optimizer = SGD(model.parameters(), lr=0.1)
    scheduler = StepLR(optimizer, step_size=1, gamma=0.5)
    loader = DataLoader(make_dataset(64), batch_size=16)
    updates = Updates(model, optimizer)
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = cross_entropy(model(inputs.to(gpu)), targets.to(gpu))
        loss.backward()
        optimizer.step()
        scheduler.step()
    return {"rates": updates.rates}


def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]:
    title = "learning rate of the first step"
    for one in bad:
        yield Check(title, one["rates"][0], "close", 0.05, of="bad")
    for one in good:
        yield Check(title, one["rates"][0], "close", 0.1, of="good")
        yield Check("learning rate of the last step", one["rates"][-1], "close", 0.0125, of="good")
