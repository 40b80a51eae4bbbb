"""An evaluation that records a graph keeps what a backward would need, for no backward.

Counted: the bytes that autograd saved while the forward of each batch ran.
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
    outputs = []
    with saved_tensor_bytes() as saved:
        for inputs, _ in loader:  # DDP602
            outputs.append(model(inputs.to(gpu)))
        kept = saved.bytes
    return {"bytes": kept, "batches": len(outputs)}


def good() -> Seen:
    gpu = device()
    model = make_model().to(gpu)
    loader = DataLoader(make_dataset(64), batch_size=16)
    model.eval()
    outputs = []
    with saved_tensor_bytes() as saved:
        with torch.no_grad():
            for inputs, _ in loader:
                outputs.append(model(inputs.to(gpu)))
        kept = saved.bytes
    return {"bytes": kept, "batches": len(outputs)}


def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]:
    title = "bytes kept for a backward, per batch"
    # At least the input [16, 32] and the hidden layer [16, 64] in float32.
    least = 4 * 16 * (32 + 64)
    yield Check(title, min(one["bytes"] / one["batches"] for one in bad), ">=", least, of="bad")
    yield Check(title, max(one["bytes"] / one["batches"] for one in good), "==", 0, of="good")
