"""Gradients that are never cleared: each step walks along the sum of all gradients so far.

The gradient that each step used is compared with the one that its own backward made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torch.nn.functional import cross_entropy
from torch.optim import SGD
from torch.utils.data import DataLoader

from .context import device
from .harness import Check, Seen
from .pictures import Lines
from .small import Updates, make_dataset, make_model

SETTINGS = {"batch": [16, 32], "dtype": "float32", "optimizer": "SGD"}


def bad() -> Seen:
    gpu = device()
    model = make_model().to(gpu)
    optimizer = SGD(model.parameters(), lr=0.1)
    loader = DataLoader(make_dataset(160), batch_size=16)
    updates = Updates(model, optimizer)
    for inputs, targets in loader:  # DDP204
        loss = cross_entropy(model(inputs.to(gpu)), targets.to(gpu))
        loss.backward()
        optimizer.step()
    return {"norms": updates.norms, "strays": updates.strays}


def good() -> Seen:
    gpu = device()
    model = make_model().to(gpu)
    optimizer = SGD(model.parameters(), lr=0.1)
    loader = DataLoader(make_dataset(160), batch_size=16)
    updates = Updates(model, optimizer)
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = cross_entropy(model(inputs.to(gpu)), targets.to(gpu))
        loss.backward()
        optimizer.step()
    return {"norms": updates.norms, "strays": updates.strays}


def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]:
    title = "old gradients in a step, as a share of its own"
    # The first step has nothing to inherit; it is the probe's own negative control.
    yield Check("… in the first step", max(one["strays"][0] for one in bad), "==", 0.0, of="bad")
    yield Check(title, min(min(one["strays"][1:]) for one in bad), ">", 0.5, of="bad")
    yield Check(title, max(max(one["strays"]) for one in good), "==", 0.0, of="good")


def picture(bad: Sequence[Seen], good: Sequence[Seen]) -> Lines:
    return Lines(
        title="Norm of the gradient that each step uses",
        x_label="step",
        y_label="norm",
        x=range(len(good[0]["norms"])),
        series={"bad": bad[0]["norms"], "good": good[0]["norms"]},
    )
