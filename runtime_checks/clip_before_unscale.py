"""Clipping what is still scaled leaves SGD 1/scale of the update that fp32 training makes.

The norm of the gradient that each ``optimizer.step()`` used is compared with the same steps of
an fp32 run.  The scaler divides by the scale after the clip, so what was cut to ``max_norm``
shrinks once more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils import clip_grad_norm_
from torch.optim import SGD
from torch.utils.data import DataLoader, DistributedSampler

from .context import device
from .harness import Check, Seen
from .small import Updates, make_dataset, make_model

SCALE = 65536.0
MAX_NORM = 0.1

SETTINGS = {"batch": [8, 32], "amp": "float16", "init_scale": SCALE, "max_norm": MAX_NORM}
NOT_COVERED = (
    "optimizers other than SGD: Adam divides by the gradient's own size and hides most of it",
)


def bad() -> Seen:
    gpu = device()
    model = DistributedDataParallel(make_model().to(gpu))
    optimizer = SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler(gpu.type, init_scale=SCALE)
    dataset = make_dataset()
    loader = DataLoader(dataset, batch_size=8, sampler=DistributedSampler(dataset))
    updates = Updates(model, optimizer)
    for inputs, targets in loader:
        optimizer.zero_grad()
        with torch.autocast(gpu.type, torch.float16):
            loss = cross_entropy(model(inputs.to(gpu)), targets.to(gpu))
        scaler.scale(loss).backward()
        clip_grad_norm_(model.parameters(), MAX_NORM)  # DDP201
        scaler.step(optimizer)
        scaler.update()
    return {"norms": updates.norms, "fp32 norms": fp32_norms()}


def good() -> Seen:
    gpu = device()
    model = DistributedDataParallel(make_model().to(gpu))
    optimizer = SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler(gpu.type, init_scale=SCALE)
    dataset = make_dataset()
    loader = DataLoader(dataset, batch_size=8, sampler=DistributedSampler(dataset))
    updates = Updates(model, optimizer)
    for inputs, targets in loader:
        optimizer.zero_grad()
        with torch.autocast(gpu.type, torch.float16):
            loss = cross_entropy(model(inputs.to(gpu)), targets.to(gpu))
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        clip_grad_norm_(model.parameters(), MAX_NORM)
        scaler.step(optimizer)
        scaler.update()
    return {"norms": updates.norms, "fp32 norms": fp32_norms()}


def fp32_norms() -> list[float]:
    """What each step uses without mixed precision."""
    gpu = device()
    model = DistributedDataParallel(make_model().to(gpu))
    optimizer = SGD(model.parameters(), lr=0.1)
    dataset = make_dataset()
    loader = DataLoader(dataset, batch_size=8, sampler=DistributedSampler(dataset))
    updates = Updates(model, optimizer)
    for inputs, targets in loader:
        optimizer.zero_grad()
        cross_entropy(model(inputs.to(gpu)), targets.to(gpu)).backward()
        clip_grad_norm_(model.parameters(), MAX_NORM)
        optimizer.step()
    return updates.norms


def ratios(seen: Sequence[Seen]) -> list[float]:
    """Update by update, what mixed precision used as a share of what fp32 used."""
    return [
        norm / fp32
        for one in seen
        for norm, fp32 in zip(one["norms"], one["fp32 norms"], strict=True)
    ]


def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]:
    for name, pick in ("smallest", min), ("largest", max):
        title = f"{name} update as a share of fp32's"
        yield Check(title, pick(ratios(bad)), "close", 1 / SCALE, of="bad", rel=0.01)
        yield Check(title, pick(ratios(good)), "close", 1.0, of="good", rel=0.01)
