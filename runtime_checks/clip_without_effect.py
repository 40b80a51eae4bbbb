"""Clipping after the optimizer has stepped: the steps use gradients of any length.

Noted: the norm of the gradient that each ``optimizer.step()`` used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torch.nn.functional import cross_entropy
from torch.nn.utils import clip_grad_norm_
from torch.optim import SGD
from torch.utils.data import DataLoader

from .context import device
from .harness import Check, Seen
from .small import Updates, make_dataset, make_model

MAX_NORM = 0.1
SETTINGS = {"batch": [16, 32], "dtype": "float32", "max_norm": MAX_NORM}


def bad() -> Seen:
    gpu = device()
    model = make_model().to(gpu)
    optimizer = SGD(model.parameters(), lr=0.1)
    loader = DataLoader(make_dataset(64), batch_size=16)
    updates = Updates(model, optimizer)
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = cross_entropy(model(inputs.to(gpu)), targets.to(gpu))
        loss.backward()
        optimizer.step()
        clip_grad_norm_(model.parameters(), MAX_NORM)  # DDP210
    return {"norms": updates.norms}


def good() -> Seen:
    gpu = device()
    model = make_model().to(gpu)
    optimizer = SGD(model.parameters(), lr=0.1)
    loader = DataLoader(make_dataset(64), batch_size=16)
    updates = Updates(model, optimizer)
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = cross_entropy(model(inputs.to(gpu)), targets.to(gpu))
        loss.backward()
        clip_grad_norm_(model.parameters(), MAX_NORM)
        optimizer.step()
    return {"norms": updates.norms}


def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]:
    title = "longest gradient in a step, over max_norm"
    yield Check(title, max(max(one["norms"]) for one in bad) / MAX_NORM, ">", 2, of="bad")
    yield Check(title, max(max(one["norms"]) for one in good) / MAX_NORM, "<=", 1.001, of="good")
