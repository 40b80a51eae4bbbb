"""A prefetcher without its waits hands over batches that have not arrived, or no longer are there.

Every batch is full of its own number.  Counted: the batches whose sum, taken by the consumer, is
not that number's.  Without the wait the consumer reads before the copy is over; that shows when
copies are slow.  With nothing that keeps the memory, a later copy overwrites a batch which the
consumer has still to read; that shows when the consumer is slow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch.utils.data import DataLoader, TensorDataset

from . import streams
from .harness import Check, Seen
from .small import agreed
from .streams import slow_device

SIMULATED = streams.SIMULATED
BATCHES = 30
SETTINGS = {
    "batches": BATCHES,
    "batch": [4, 8],
    "slow copies": "3 ms, kernels 1 ms",
    "slow kernels": "2 ms, copies 1 ms",
}
NOT_COVERED = ("other latencies: with the two swapped, neither defect shows at all",)


class NeverWaits:
    def __init__(self, loader: DataLoader[Any]) -> None:
        self.loader = loader
        self.stream = torch.cuda.Stream()
        self.images: torch.Tensor | None = None

    def __iter__(self) -> Iterator[torch.Tensor]:
        self.batches = iter(self.loader)
        self.preload()
        return self

    def preload(self) -> None:
        try:
            (images,) = next(self.batches)
        except StopIteration:
            self.images = None
            return
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            self.images = images.cuda(non_blocking=True)

    def __next__(self) -> torch.Tensor:
        images = self.images
        if images is None:
            raise StopIteration
        self.preload()
        return images  # DDP106


class NothingKeepsTheMemory:
    def __init__(self, loader: DataLoader[Any]) -> None:
        self.loader = loader
        self.stream = torch.cuda.Stream()
        self.images: torch.Tensor | None = None

    def __iter__(self) -> Iterator[torch.Tensor]:
        self.batches = iter(self.loader)
        self.preload()
        return self

    def preload(self) -> None:
        try:
            (images,) = next(self.batches)
        except StopIteration:
            self.images = None
            return
        with torch.cuda.stream(self.stream):  # DDP106
            self.images = images.cuda(non_blocking=True)

    def __next__(self) -> torch.Tensor:
        torch.cuda.current_stream().wait_stream(self.stream)
        images = self.images
        if images is None:
            raise StopIteration
        self.preload()
        return images


class RecordsTheStream:
    def __init__(self, loader: DataLoader[Any]) -> None:
        self.loader = loader
        self.stream = torch.cuda.Stream()
        self.images: torch.Tensor | None = None

    def __iter__(self) -> Iterator[torch.Tensor]:
        self.batches = iter(self.loader)
        self.preload()
        return self

    def preload(self) -> None:
        try:
            (images,) = next(self.batches)
        except StopIteration:
            self.images = None
            return
        with torch.cuda.stream(self.stream):
            self.images = images.cuda(non_blocking=True)

    def __next__(self) -> torch.Tensor:
        torch.cuda.current_stream().wait_stream(self.stream)
        images = self.images
        if images is None:
            raise StopIteration
        images.record_stream(torch.cuda.current_stream())
        self.preload()
        return images


def bad() -> Seen:
    with slow_device(copy=3, kernel=1):
        too_early = wrong_sums(NeverWaits(make_loader()))
    with slow_device(copy=1, kernel=2):
        overwritten = wrong_sums(NothingKeepsTheMemory(make_loader()))
    return {"too early": too_early, "overwritten": overwritten}


def good() -> Seen:
    with slow_device(copy=3, kernel=1):
        too_early = wrong_sums(RecordsTheStream(make_loader()))
    with slow_device(copy=1, kernel=2):
        overwritten = wrong_sums(RecordsTheStream(make_loader()))
    return {"too early": too_early, "overwritten": overwritten}


def make_loader() -> DataLoader[Any]:
    """Batch k is [4, 8] full of k + 1."""
    numbers = torch.arange(1, BATCHES + 1, dtype=torch.float32).repeat_interleave(4)
    dataset = TensorDataset(numbers[:, None].expand(-1, 8).contiguous())
    return DataLoader(dataset, batch_size=4, pin_memory=torch.cuda.is_available())


def wrong_sums(batches: Iterable[torch.Tensor]) -> int:
    """How many batches do not add up; the host reads nothing before the last one."""
    sums = []
    for images in batches:
        sums.append(images.sum())
    assert len(sums) == BATCHES
    found = torch.tensor([each.item() for each in sums])
    return int((found != 32 * torch.arange(1, BATCHES + 1)).sum())


def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]:
    title = "batches read before they had arrived"
    yield Check(title, min(one["too early"] for one in bad), ">=", BATCHES // 2, of="bad")
    yield Check(title, agreed(one["too early"] for one in good), "==", 0, of="good")
    title = "batches overwritten before they were read"
    yield Check(title, min(one["overwritten"] for one in bad), ">=", BATCHES // 2, of="bad")
    yield Check(title, agreed(one["overwritten"] for one in good), "==", 0, of="good")
