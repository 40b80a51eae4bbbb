"""Clearing inside the accumulation window: only the window's last micro-batch moves the model.

The gradient that each step used is compared with the sum of those that its window made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torch.nn.functional import cross_entropy
from torch.optim import SGD
from torch.utils.data import DataLoader

from .context import device
from .harness import Check, Seen
from .small import Updates, make_dataset, make_model

WINDOW = 4
SETTINGS = {"batch": [8, 32], "dtype": "float32", "micro-batches per step": WINDOW}


def bad() -> Seen:
    gpu = device()
    model = make_model().to(gpu)
    optimizer = SGD(model.parameters(), lr=0.1)
    loader = DataLoader(make_dataset(64), batch_size=8)
    updates = Updates(model, optimizer)
    for step, (inputs, targets) in enumerate(loader):
        optimizer.zero_grad()  # DDP205
        loss = cross_entropy(model(inputs.to(gpu)), targets.to(gpu)) / WINDOW
        loss.backward()
        if (step + 1) % WINDOW == 0:
            optimizer.step()
    return {"strays": updates.strays}


def good() -> Seen:
    gpu = device()
    model = make_model().to(gpu)
    optimizer = SGD(model.parameters(), lr=0.1)
    loader = DataLoader(make_dataset(64), batch_size=8)
    updates = Updates(model, optimizer)
    for step, (inputs, targets) in enumerate(loader):
        loss = cross_entropy(model(inputs.to(gpu)), targets.to(gpu)) / WINDOW
        loss.backward()
        if (step + 1) % WINDOW == 0:
            optimizer.step()
            optimizer.zero_grad()
    return {"strays": updates.strays}


def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]:
    title = "gradient missing from a step, as a share of its window's"
    yield Check(title, min(min(one["strays"]) for one in bad), ">", 0.5, of="bad")
    yield Check(title, max(max(one["strays"]) for one in good), "<", 1e-5, of="good")
