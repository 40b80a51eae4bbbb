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
from .pictures import Lines
from .small import Updates, make_dataset, make_model

SCALES = (65536.0, 1024.0, 128.0, 1.0)
MAX_NORM = 0.1

SETTINGS = {"batch": [8, 32], "amp": "float16", "scales": SCALES, "max_norm": MAX_NORM}
NOT_COVERED = (
    "optimizers other than SGD: Adam divides by the gradient's own size and hides most of it",
)


def bad() -> Seen:
    return {
        "norms": {f"{scale:g}": clip_then_unscale(scale) for scale in SCALES},
        "fp32 norms": fp32_norms(),
    }


def clip_then_unscale(scale: float) -> list[float]:
    gpu = device()
    model = DistributedDataParallel(make_model().to(gpu))
    optimizer = SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler(gpu.type, init_scale=scale)
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
    return updates.norms


def good() -> Seen:
    return {
        "norms": {f"{scale:g}": unscale_then_clip(scale) for scale in SCALES},
        "fp32 norms": fp32_norms(),
    }


def unscale_then_clip(scale: float) -> list[float]:
    gpu = device()
    model = DistributedDataParallel(make_model().to(gpu))
    optimizer = SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler(gpu.type, init_scale=scale)
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
    return updates.norms


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


def shares(one: Seen, scale: float) -> list[float]:
    """Update by update, what mixed precision used as a share of what fp32 used."""
    pairs = zip(one["norms"][f"{scale:g}"], one["fp32 norms"], strict=True)
    return [norm / fp32 for norm, fp32 in pairs]


def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]:
    # At a scale of 1 there is nothing to get wrong: what is left is the probe's own error.
    for scale in SCALES:
        for name, pick in ("smallest", min), ("largest", max):
            title = f"{name} update as a share of fp32's, scale {scale:g}"
            share = pick(pick(shares(one, scale)) for one in bad)
            yield Check(title, share, "close", 1 / scale, of="bad", rel=0.01)
            share = pick(pick(shares(one, scale)) for one in good)
            yield Check(title, share, "close", 1.0, of="good", rel=0.01)


def picture(bad: Sequence[Seen], good: Sequence[Seen]) -> Lines:
    return Lines(
        title="Length of the first update as a share of fp32's",
        x_label="scale",
        y_label="share",
        x=sorted(SCALES),
        series={
            "bad": [shares(bad[0], scale)[0] for scale in sorted(SCALES)],
            "good": [shares(good[0], scale)[0] for scale in sorted(SCALES)],
        },
        log_x=True,
        log_y=True,
    )
