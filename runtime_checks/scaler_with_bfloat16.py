"""A GradScaler beside bfloat16 reads the device once a step and changes no update.

bfloat16 has the exponents of float32, so there is nothing to rescue; what remains of the scaler
is its question, at each step, whether a gradient overflowed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch.nn.functional import cross_entropy
from torch.optim import SGD
from torch.utils.data import DataLoader

from .context import device
from .harness import Check, Seen
from .probes import host_reads
from .small import agreed, make_dataset, make_model

STEPS = 10
SETTINGS = {"batch": [16, 32], "amp": "bfloat16", "steps": STEPS}


def bad() -> Seen:
    gpu = device()
    model = make_model().to(gpu)
    optimizer = SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler(gpu.type)  # DDP208
    loader = DataLoader(make_dataset(16 * STEPS), batch_size=16, pin_memory=True)
    with host_reads() as reads:
        for inputs, targets in loader:
            inputs = inputs.to(gpu, non_blocking=True)
            targets = targets.to(gpu, non_blocking=True)
            optimizer.zero_grad()
            with torch.autocast(gpu.type, torch.bfloat16):
                loss = cross_entropy(model(inputs), targets)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
    return {"reads": reads.count, "scale": scaler.get_scale()}


def good() -> Seen:
    gpu = device()
    model = make_model().to(gpu)
    optimizer = SGD(model.parameters(), lr=0.1)
    loader = DataLoader(make_dataset(16 * STEPS), batch_size=16, pin_memory=True)
    with host_reads() as reads:
        for inputs, targets in loader:
            inputs = inputs.to(gpu, non_blocking=True)
            targets = targets.to(gpu, non_blocking=True)
            optimizer.zero_grad()
            with torch.autocast(gpu.type, torch.bfloat16):
                loss = cross_entropy(model(inputs), targets)
            loss.backward()
            optimizer.step()
    return {"reads": reads.count, "scale": None}


def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]:
    title = "device reads per step"
    yield Check(title, min(one["reads"] for one in bad) / STEPS, ">=", 1, of="bad")
    yield Check(title, max(one["reads"] for one in good) / STEPS, "==", 0, of="good")
    # It never had a reason to back off: what it guards against does not happen.
    yield Check("scale at the end", agreed(one["scale"] for one in bad), "==", 65536.0, of="bad")
