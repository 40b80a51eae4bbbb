"""A scaled backward followed by a plain `optimizer.step()`: the update is `scale` times too long.

The gradient norm that the first step used is compared with the norm of the unscaled loss's
gradient at the same parameters.  Nothing raises: the run just leaves for infinity.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch.nn.functional import cross_entropy
from torch.optim import SGD
from torch.utils.data import DataLoader

from .context import device
from .harness import Check, Seen
from .small import Updates, gradient_norm, make_dataset, make_model

SCALE = 65536.0
SETTINGS = {"batch": [8, 32], "amp": "float16", "init_scale": SCALE}
NOT_COVERED = (
    "a missing update() and an unscaled backward before scaler.step(): both raise by themselves",
)


def bad() -> Seen:
    gpu = device()
    model = make_model().to(gpu)
    optimizer = SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler(gpu.type, init_scale=SCALE)
    loader = DataLoader(make_dataset(8), batch_size=8)
    updates = Updates(model, optimizer)
    for inputs, targets in loader:
        optimizer.zero_grad()
        with torch.autocast(gpu.type, torch.float16):
            loss = cross_entropy(model(inputs.to(gpu)), targets.to(gpu))
        scaler.scale(loss).backward()
        optimizer.step()  # DDP206
    return {"norm": updates.norms[0], "fp32 norm": fp32_norm()}


def good() -> Seen:
    gpu = device()
    model = make_model().to(gpu)
    optimizer = SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler(gpu.type, init_scale=SCALE)
    loader = DataLoader(make_dataset(8), batch_size=8)
    updates = Updates(model, optimizer)
    for inputs, targets in loader:
        optimizer.zero_grad()
        with torch.autocast(gpu.type, torch.float16):
            loss = cross_entropy(model(inputs.to(gpu)), targets.to(gpu))
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    return {"norm": updates.norms[0], "fp32 norm": fp32_norm()}


def fp32_norm() -> float:
    """Gradient norm of the first batch without mixed precision."""
    model = make_model().to(device())
    inputs, targets = make_dataset(8)[:]
    return gradient_norm(model, cross_entropy(model(inputs.to(device())), targets.to(device())))


def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]:
    title = "update as a multiple of fp32's"
    for one in bad:
        yield Check(title, one["norm"] / one["fp32 norm"], "close", SCALE, of="bad", rel=0.01)
    for one in good:
        yield Check(title, one["norm"] / one["fp32 norm"], "close", 1.0, of="good", rel=0.01)
