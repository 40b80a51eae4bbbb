"""Micro-batch losses that nobody divides make the update as many times too long as the window.

The norm of the gradient of the first step is compared with that of the mean loss over all
samples of the window, taken in one go at the same parameters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torch.nn.functional import cross_entropy
from torch.optim import SGD
from torch.utils.data import DataLoader

from .context import device
from .harness import Check, Seen
from .small import Updates, gradient_norm, make_dataset, make_model

WINDOW = 4
SETTINGS = {"batch": [8, 32], "dtype": "float32", "micro-batches per step": WINDOW}


def bad() -> Seen:
    gpu = device()
    model = make_model().to(gpu)
    optimizer = SGD(model.parameters(), lr=0.1)
    loader = DataLoader(make_dataset(64), batch_size=8)
    updates = Updates(model, optimizer)
    for step, (inputs, targets) in enumerate(loader):
        loss = cross_entropy(model(inputs.to(gpu)), targets.to(gpu))
        loss.backward()  # DDP203
        if (step + 1) % WINDOW == 0:
            optimizer.step()
            optimizer.zero_grad()
    return {"norm": updates.norms[0], "norm of the whole": norm_of_the_whole()}


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
    return {"norm": updates.norms[0], "norm of the whole": norm_of_the_whole()}


def norm_of_the_whole() -> float:
    """Gradient norm of the first window taken as one batch."""
    model = make_model().to(device())
    inputs, targets = make_dataset(64)[: 8 * WINDOW]
    return gradient_norm(model, cross_entropy(model(inputs.to(device())), targets.to(device())))


def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]:
    title = "accumulated gradient as a multiple of the one-batch gradient"
    for one in bad:
        yield Check(title, one["norm"] / one["norm of the whole"], "close", WINDOW, of="bad")
    for one in good:
        yield Check(title, one["norm"] / one["norm of the whole"], "close", 1.0, of="good")
