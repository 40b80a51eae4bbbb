"""Every rank writes the same checkpoint; who reads it in between finds half a file.

Counted: the ranks that write the path, and the readers that fail.  A reader comes by while a
rank is in the middle of its second save: the checkpoint holds an object that loads the file at
that moment.  The mend writes on one rank, to another name, and renames when the file is whole.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from pathlib import Path
from pickle import UnpicklingError

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from .context import device, gather, scratch
from .harness import Check, Seen, needs
from .pictures import Bars
from .probes import writers
from .small import make_model

NEEDS = needs(ranks=2, shared_folder=True)
SETTINGS = {"saves": 2}


class Reader:
    """Loads a file whenever it is itself pickled; leaves nothing behind in the pickle."""

    def __init__(self, path: Path, *, on_all_ranks: bool) -> None:
        self.path = path
        self.on_all_ranks = on_all_ranks
        self.failed: list[bool] = []

    def __reduce__(self) -> tuple[type[OrderedDict[str, int]], tuple[()]]:
        # Where all ranks write, all of them are in the middle of it at this moment.
        if self.on_all_ranks:
            gather("writing")
        self.failed.append(not loads(self.path))
        if self.on_all_ranks:
            gather("read")
        return OrderedDict, ()


def bad() -> Seen:
    path = scratch() / "checkpoint.pt"
    model = DistributedDataParallel(make_model().to(device()))
    reader = Reader(path, on_all_ranks=True)
    with writers() as writes:
        torch.save({"model": model.module.state_dict()}, path)  # DDP401
        dist.barrier()
        torch.save({"model": model.module.state_dict(), "reader": reader}, path)  # DDP401
        dist.barrier()
    return {"written": sum(writes.by_path.values()), "failed": reader.failed}


def good() -> Seen:
    path = scratch() / "checkpoint.pt"
    model = DistributedDataParallel(make_model().to(device()))
    reader = Reader(path, on_all_ranks=False)
    with writers() as writes:
        if dist.get_rank() == 0:
            torch.save({"model": model.module.state_dict()}, path)
        dist.barrier()
        if dist.get_rank() == 0:
            partial = path.with_suffix(".partial")
            torch.save({"model": model.module.state_dict(), "reader": reader}, partial)
            os.replace(partial, path)
        dist.barrier()
    return {"written": sum(writes.by_path.values()), "failed": reader.failed}


def loads(path: Path) -> bool:
    """Whether the file is a whole checkpoint."""
    try:
        torch.load(path, map_location="cpu")
    except (RuntimeError, EOFError, UnpicklingError):
        return False
    return True


def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]:
    title = "ranks that write the file"
    yield Check(title, sum(one["written"] > 0 for one in bad), "==", len(bad), of="bad")
    yield Check(title, sum(one["written"] > 0 for one in good), "==", 1, of="good")
    title = "readers that failed"
    yield Check(title, _failed(bad), "==", len(bad), of="bad")
    yield Check(title, _failed(good), "==", 0, of="good")
    readers = sum(len(one["failed"]) for one in bad)
    yield Check("readers", readers, "==", len(bad), of="bad")
    readers = sum(len(one["failed"]) for one in good)
    yield Check("readers", readers, "==", 1, of="good")


def picture(bad: Sequence[Seen], good: Sequence[Seen]) -> Bars:
    return Bars(
        title="Readers in the middle of a save that found a broken file",
        y_label="readers",
        bars={"bad": _failed(bad), "good": _failed(good)},
    )


def _failed(seen: Sequence[Seen]) -> int:
    return sum(sum(one["failed"]) for one in seen)
