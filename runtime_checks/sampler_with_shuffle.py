"""`sampler=` and `shuffle=True` together: the loader refuses to be built.

Noted: what the constructor raised, or how many batches came.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from torch.utils.data import DataLoader, DistributedSampler

from .harness import Check, Seen
from .small import make_dataset

SETTINGS = {"batch": [16, 32], "samples": 64}


def bad() -> Seen:
    dataset = make_dataset(64)
    sampler: DistributedSampler[Any] = DistributedSampler(dataset)
    try:
        loader = DataLoader(dataset, batch_size=16, sampler=sampler, shuffle=True)  # DDP306
    except ValueError as error:
        return {"batches": 0, "raised": str(error)}
    return {"batches": sum(1 for batch in loader), "raised": ""}


def good() -> Seen:
    dataset = make_dataset(64)
    sampler: DistributedSampler[Any] = DistributedSampler(dataset, shuffle=True)
    loader = DataLoader(dataset, batch_size=16, sampler=sampler)
    return {"batches": sum(1 for batch in loader), "raised": ""}


def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]:
    title = "batches"
    yield Check(title, max(one["batches"] for one in bad), "==", 0, of="bad")
    yield Check(title, min(one["batches"] for one in good), ">=", 1, of="good")
    refused = sum("mutually exclusive" in one["raised"] for one in bad)
    yield Check("ranks where the constructor raised", refused, "==", len(bad), of="bad")
    refused = sum(one["raised"] != "" for one in good)
    yield Check("ranks where the constructor raised", refused, "==", 0, of="good")
