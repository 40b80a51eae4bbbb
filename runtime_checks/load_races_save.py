"""All ranks load what one rank saves, and nobody waits: the others come too early.

Saving is slow here: rank 0 writes when the others have tried to load, or after a while if they
do not.  Counted: the ranks that found no file.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from .context import device, rank, world_size
from .harness import Check, Seen, needs
from .small import make_model, new_folder

NEEDS = needs(ranks=2, shared_folder=True)
SETTINGS = {"saving": "begins when the other ranks have tried to load"}


def bad() -> Seen:
    path = new_folder() / "model.pt"
    model = DistributedDataParallel(make_model().to(device()))
    found = True
    with slow_disk(path, patience=20):
        if dist.get_rank() == 0:
            torch.save(model.module.state_dict(), path)
        try:
            state = torch.load(path, map_location="cpu")  # DDP405
            model.module.load_state_dict(state)
        except FileNotFoundError:
            found = False
    return {"found": found}


def good() -> Seen:
    path = new_folder() / "model.pt"
    model = DistributedDataParallel(make_model().to(device()))
    found = True
    with slow_disk(path, patience=0.3):
        if dist.get_rank() == 0:
            torch.save(model.module.state_dict(), path)
        dist.barrier()
        try:
            state = torch.load(path, map_location="cpu")
            model.module.load_state_dict(state)
        except FileNotFoundError:
            found = False
    return {"found": found}


@contextmanager
def slow_disk(path: Path, patience: float) -> Iterator[None]:
    """Let ``torch.save`` begin when all other ranks have called ``torch.load``.

    ``patience`` is how many seconds it waits for that: long where they come, so that a busy
    machine changes nothing, and short where they cannot.
    """
    save, load = torch.save, torch.load
    flags = [path.with_suffix(f".tried{other}") for other in range(world_size())]

    def late_save(*args: Any, **kwargs: Any) -> None:
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline and not all(flag.exists() for flag in flags[1:]):
            time.sleep(0.01)
        save(*args, **kwargs)

    def noted_load(*args: Any, **kwargs: Any) -> Any:
        try:
            return load(*args, **kwargs)
        finally:
            flags[rank()].touch()

    with patch.object(torch, "save", late_save), patch.object(torch, "load", noted_load):
        yield


def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]:
    title = "ranks that found no file"
    yield Check(title, sum(not one["found"] for one in bad), "==", len(bad) - 1, of="bad")
    yield Check(title, sum(not one["found"] for one in good), "==", 0, of="good")
