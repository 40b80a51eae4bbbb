"""`destroy_process_group` on rank 0 alone: the other ranks' next collective finds nobody.

Noted on each rank: how the barrier after it ended, and whether the group is open at the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta

import torch.distributed as dist

from .context import gather, rank, world_size
from .harness import Check, Seen, needs
from .small import leave_default_group, new_folder

NEEDS = needs(ranks=2, shared_folder=True)
SETTINGS = {"backend": "gloo", "timeout": "20 s"}
NOT_COVERED = ("NCCL, where destroying waits for the other ranks",)


def bad() -> Seen:
    leave_default_group()
    meet = f"file://{new_folder()}/group"
    limit = timedelta(seconds=20)
    dist.init_process_group("gloo", meet, limit, rank=rank(), world_size=world_size())
    dist.barrier()
    if dist.get_rank() == 0:
        dist.destroy_process_group()  # DDP514
    return {"open": dist.is_initialized()} | another_barrier()


def good() -> Seen:
    leave_default_group()
    meet = f"file://{new_folder()}/group"
    limit = timedelta(seconds=20)
    dist.init_process_group("gloo", meet, limit, rank=rank(), world_size=world_size())
    dist.barrier()
    ended = another_barrier()
    dist.destroy_process_group()
    return {"open": dist.is_initialized()} | ended


def another_barrier() -> Seen:
    """What the ranks that still have a group find when they go on."""
    gather("rank 0 is past it")
    try:
        if dist.is_initialized():
            dist.barrier()
    except RuntimeError:
        return {"went on": False}
    return {"went on": dist.is_initialized()}


def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]:
    title = "ranks that are left with an open group"
    yield Check(title, sum(one["open"] for one in bad), "==", len(bad) - 1, of="bad")
    yield Check(title, sum(one["open"] for one in good), "==", 0, of="good")
    title = "ranks that could go on"
    yield Check(title, sum(one["went on"] for one in bad), "==", 0, of="bad")
    yield Check(title, sum(one["went on"] for one in good), "==", len(good), of="good")
