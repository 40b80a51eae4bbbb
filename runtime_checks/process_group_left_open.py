"""A process group that nobody destroys: its connections and threads are there at the exit.

Noted when the function is over: whether the group is still there.  Recorded beside it, as
observed: the sockets that are open.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
import torch.distributed as dist

from .context import rank, world_size
from .harness import Check, Seen, needs
from .small import leave_default_group, new_folder

NEEDS = needs(shared_folder=True)
SETTINGS = {"backend": "gloo"}
NOT_COVERED = ("what NCCL does at an exit with an open group: warn, and at times hang",)


def bad() -> Seen:
    leave_default_group()
    meet = f"file://{new_folder()}/group"
    dist.init_process_group("gloo", meet, rank=rank(), world_size=world_size())  # DDP508
    total = torch.ones(1)
    dist.all_reduce(total)
    return {"sum": total.item(), "open": dist.is_initialized(), "observed": {"sockets": sockets()}}


def good() -> Seen:
    leave_default_group()
    meet = f"file://{new_folder()}/group"
    dist.init_process_group("gloo", meet, rank=rank(), world_size=world_size())
    total = torch.ones(1)
    dist.all_reduce(total)
    dist.destroy_process_group()
    return {"sum": total.item(), "open": dist.is_initialized(), "observed": {"sockets": sockets()}}


def sockets() -> int | None:
    """How many sockets this process has open, where the system tells."""
    folder = Path("/proc/self/fd")
    if not folder.is_dir():
        return None
    targets = [os.readlink(each) for each in folder.iterdir() if each.is_symlink()]
    return sum(target.startswith("socket:") for target in targets)


def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]:
    title = "ranks whose group is open at the end"
    yield Check(title, sum(one["open"] for one in bad), "==", len(bad), of="bad")
    yield Check(title, sum(one["open"] for one in good), "==", 0, of="good")
    for one in good:
        yield Check("sum over the ranks", one["sum"], "==", float(len(good)), of="good")
