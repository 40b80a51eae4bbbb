"""A checkpoint without the scaler's state: the resumed run skips steps until the scale is found.

The first run starts from a scale that is far too high, as the default can be late in training,
and backs off.  Counted: the optimizer steps that the scaler lets through after the resume.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy
from torch.optim import SGD, Optimizer
from torch.utils.data import DataLoader

from .context import device, scratch
from .harness import Check, Seen, needs
from .small import Updates, make_dataset, make_model

NEEDS = needs(shared_folder=True)
INIT_SCALE = 2.0**30
SETTINGS = {"batch": [8, 32], "amp": "float16", "init_scale": INIT_SCALE}


def bad() -> Seen:
    gpu = device()
    path = scratch() / "checkpoint.pt"
    model = make_model().to(gpu)
    optimizer = SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler(gpu.type, init_scale=INIT_SCALE)
    train(model, optimizer, scaler, steps=25)
    if dist.get_rank() == 0:
        torch.save(  # DDP212
            {"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path
        )
    dist.barrier()

    checkpoint = torch.load(path, map_location=gpu)
    scaler = torch.amp.GradScaler(gpu.type, init_scale=INIT_SCALE)
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    return {"steps": train(model, optimizer, scaler, steps=10), "scale": scaler.get_scale()}


def good() -> Seen:
    gpu = device()
    path = scratch() / "checkpoint.pt"
    model = make_model().to(gpu)
    optimizer = SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler(gpu.type, init_scale=INIT_SCALE)
    train(model, optimizer, scaler, steps=25)
    if dist.get_rank() == 0:
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        state["scaler"] = scaler.state_dict()
        torch.save(state, path)
    dist.barrier()

    checkpoint = torch.load(path, map_location=gpu)
    scaler = torch.amp.GradScaler(gpu.type, init_scale=INIT_SCALE)
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    scaler.load_state_dict(checkpoint["scaler"])
    return {"steps": train(model, optimizer, scaler, steps=10), "scale": scaler.get_scale()}


def train(model: nn.Module, optimizer: Optimizer, scaler: torch.amp.GradScaler, steps: int) -> int:
    """Train for ``steps`` batches; returns how many of them moved the parameters."""
    gpu = device()
    loader = DataLoader(make_dataset(8 * steps), batch_size=8)
    updates = Updates(model, optimizer)
    for inputs, targets in loader:
        optimizer.zero_grad()
        with torch.autocast(gpu.type, torch.float16):
            loss = cross_entropy(model(inputs.to(gpu)), targets.to(gpu))
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    return len(updates.norms)


def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]:
    title = "steps made, of the ten after the resume"
    yield Check(title, max(one["steps"] for one in bad), "==", 0, of="bad")
    yield Check(title, min(one["steps"] for one in good), "==", 10, of="good")
