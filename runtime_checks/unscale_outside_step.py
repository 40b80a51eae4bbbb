"""`unscale_` on every micro-batch raises at the second one, before a single optimizer step.

Counted: how many optimizer steps eight micro-batches lead to, and what was raised.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch.nn.functional import cross_entropy
from torch.nn.utils import clip_grad_norm_
from torch.optim import SGD
from torch.utils.data import DataLoader

from .context import device
from .harness import Check, Seen
from .small import Updates, agreed, make_dataset, make_model

WINDOW = 4
SETTINGS = {"batch": [8, 32], "amp": "float16", "micro-batches per step": WINDOW}


def bad() -> Seen:
    gpu = device()
    model = make_model().to(gpu)
    optimizer = SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler(gpu.type, init_scale=1024.0)
    loader = DataLoader(make_dataset(64), batch_size=8)
    updates = Updates(model, optimizer)
    raised = ""
    try:
        for step, (inputs, targets) in enumerate(loader):
            with torch.autocast(gpu.type, torch.float16):
                loss = cross_entropy(model(inputs.to(gpu)), targets.to(gpu)) / WINDOW
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)  # DDP202
            if (step + 1) % WINDOW == 0:
                clip_grad_norm_(model.parameters(), 1.0)
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad()
    except RuntimeError as error:
        raised = str(error)
    return {"steps": len(updates.norms), "raised": raised}


def good() -> Seen:
    gpu = device()
    model = make_model().to(gpu)
    optimizer = SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler(gpu.type, init_scale=1024.0)
    loader = DataLoader(make_dataset(64), batch_size=8)
    updates = Updates(model, optimizer)
    for step, (inputs, targets) in enumerate(loader):
        with torch.autocast(gpu.type, torch.float16):
            loss = cross_entropy(model(inputs.to(gpu)), targets.to(gpu)) / WINDOW
        scaler.scale(loss).backward()
        if (step + 1) % WINDOW == 0:
            scaler.unscale_(optimizer)
            clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
    return {"steps": len(updates.norms), "raised": ""}


def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]:
    yield Check("optimizer steps", agreed(one["steps"] for one in bad), "==", 0, of="bad")
    yield Check("optimizer steps", agreed(one["steps"] for one in good), "==", 2, of="good")
    refused = sum("unscale_() has already been called" in one["raised"] for one in bad)
    yield Check("ranks where unscale_ was refused", refused, "==", len(bad), of="bad")
    refused = sum(one["raised"] != "" for one in good)
    yield Check("ranks where unscale_ was refused", refused, "==", 0, of="good")
