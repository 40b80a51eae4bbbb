"""An evaluation that records a graph keeps what a backward would need, for no backward.

Counted: the bytes that autograd holds when the last batch has been through the model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch.utils.data import DataLoader

from .context import device
from .harness import Check, Seen
from .probes import saved_tensor_bytes
from .small import make_dataset, make_model

SETTINGS = {"batch": [16, 32], "batches": 4}


def bad() -> Seen:
    gpu = device()
    model = make_model().to(gpu)
    loader = DataLoader(make_dataset(64), batch_size=16)
    model.eval()
    right = torch.zeros((), device=gpu, dtype=torch.int64)
    with saved_tensor_bytes() as saved:
        for inputs, targets in loader:  # DDP602
            outputs = model(inputs.to(gpu))
            right += (outputs.argmax(dim=1) == targets.to(gpu)).sum()
        kept = saved.bytes
    return {"bytes": kept, "right": right.item()}


def good() -> Seen:
    gpu = device()
    model = make_model().to(gpu)
    loader = DataLoader(make_dataset(64), batch_size=16)
    model.eval()
    right = torch.zeros((), device=gpu, dtype=torch.int64)
    with saved_tensor_bytes() as saved:
        with torch.no_grad():
            for inputs, targets in loader:
                outputs = model(inputs.to(gpu))
                right += (outputs.argmax(dim=1) == targets.to(gpu)).sum()
        kept = saved.bytes
    return {"bytes": kept, "right": right.item()}


def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]:
    title = "bytes kept for a backward of the last batch"
    # At least the input [16, 32] and the hidden layer [16, 64] in float32.
    least = 4 * 16 * (32 + 64)
    yield Check(title, min(one["bytes"] for one in bad), ">=", least, of="bad")
    yield Check(title, max(one["bytes"] for one in good), "==", 0, of="good")
