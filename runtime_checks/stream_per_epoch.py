"""A new side stream each epoch: torch keeps the memory of the old ones, and it grows.

The allocator has a pool per stream, and a stream that is gone gives its pool to nobody.  Noted:
the bytes that are reserved after each of four epochs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch.utils.data import DataLoader, TensorDataset

from . import streams
from .harness import Check, Seen
from .pictures import Lines
from .small import agreed
from .streams import slow_device

SIMULATED = streams.SIMULATED
EPOCHS = 4
SETTINGS = {"epochs": EPOCHS, "batch": [16, 1024], "batches": 4}


class StreamInIter:
    def __init__(self, loader: DataLoader[Any]) -> None:
        self.loader = loader

    def __iter__(self) -> Iterator[torch.Tensor]:
        stream = torch.cuda.Stream()  # DDP107
        for (images,) in self.loader:
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                images = images.cuda(non_blocking=True)
            torch.cuda.current_stream().wait_stream(stream)
            yield images


class OneStream:
    def __init__(self, loader: DataLoader[Any]) -> None:
        self.loader = loader
        self.stream = torch.cuda.Stream()

    def __iter__(self) -> Iterator[torch.Tensor]:
        for (images,) in self.loader:
            self.stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self.stream):
                images = images.cuda(non_blocking=True)
            torch.cuda.current_stream().wait_stream(self.stream)
            yield images


def bad() -> Seen:
    with slow_device(copy=1, kernel=1):
        return {"reserved": reserved_after_epochs(StreamInIter(make_loader()))}


def good() -> Seen:
    with slow_device(copy=1, kernel=1):
        return {"reserved": reserved_after_epochs(OneStream(make_loader()))}


def make_loader() -> DataLoader[Any]:
    dataset = TensorDataset(torch.ones(64, 1024))
    return DataLoader(dataset, batch_size=16, pin_memory=torch.cuda.is_available())


def reserved_after_epochs(batches: Iterable[torch.Tensor]) -> list[int]:
    """Bytes that the allocator holds after each epoch."""
    reserved = []
    for _ in range(EPOCHS):
        for images in batches:
            images.sum()
        torch.cuda.synchronize()
        reserved.append(torch.cuda.memory_reserved())
    return reserved


def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]:
    title = "epochs after the first that reserved more memory"
    yield Check(title, agreed(_growths(one) for one in bad), "==", EPOCHS - 1, of="bad")
    yield Check(title, agreed(_growths(one) for one in good), "==", 0, of="good")


def picture(bad: Sequence[Seen], good: Sequence[Seen]) -> Lines:
    return Lines(
        title="Memory reserved after each epoch",
        x_label="epoch",
        y_label="bytes",
        x=range(EPOCHS),
        series={"bad": bad[0]["reserved"], "good": good[0]["reserved"]},
    )


def _growths(one: Seen) -> int:
    pairs = zip(one["reserved"], one["reserved"][1:], strict=False)
    return sum(later > earlier for earlier, later in pairs)
