"""`nn.DataParallel` copies the whole model to every GPU at every forward.

Counted: the copies of the model that ten steps make.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.optim import SGD
from torch.utils.data import DataLoader, DistributedSampler

from .context import device, world_size
from .harness import Check, Seen, needs
from .small import make_dataset, make_model

NEEDS = needs(ranks=2, gpu_per_rank=True)
STEPS = 10
SETTINGS = {"batch": [16, 32], "steps": STEPS}


def bad() -> Seen:
    gpu = torch.device("cuda", 0)
    model = nn.DataParallel(make_model().to(gpu))  # DDP510
    optimizer = SGD(model.parameters(), lr=0.1)
    loader = DataLoader(make_dataset(16 * STEPS), batch_size=16)
    with counted_copies() as copies:
        for inputs, targets in loader:
            optimizer.zero_grad()
            loss = cross_entropy(model(inputs.to(gpu)), targets.to(gpu))
            loss.backward()
            optimizer.step()
    return {"copies": len(copies)}


def good() -> Seen:
    gpu = device()
    model = DistributedDataParallel(make_model().to(gpu))
    optimizer = SGD(model.parameters(), lr=0.1)
    dataset = make_dataset(16 * STEPS * world_size())
    loader = DataLoader(dataset, batch_size=16, sampler=DistributedSampler(dataset))
    with counted_copies() as copies:
        for inputs, targets in loader:
            optimizer.zero_grad()
            loss = cross_entropy(model(inputs.to(gpu)), targets.to(gpu))
            loss.backward()
            optimizer.step()
    return {"copies": len(copies)}


@contextmanager
def counted_copies() -> Iterator[list[int]]:
    """The GPUs that DataParallel copies a model to, one entry a copy."""
    copies: list[int] = []
    replicate = nn.DataParallel.replicate

    def counting(parallel: Any, module: Any, device_ids: Sequence[int]) -> Any:
        copies.extend(device_ids)
        return replicate(parallel, module, device_ids)

    with patch.object(nn.DataParallel, "replicate", counting):
        yield copies


def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]:
    title = "copies of the model per step"
    yield Check(title, min(one["copies"] for one in bad) / STEPS, ">=", 2, of="bad")
    yield Check(title, max(one["copies"] for one in good) / STEPS, "==", 0, of="good")
