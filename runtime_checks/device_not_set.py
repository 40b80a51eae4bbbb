"""NCCL before `set_device`: every rank of a node is on GPU 0 when its first collective comes.

Noted: the GPU that is current on each rank when the process group is made and when the first
collective comes.  With real NCCL that is an error about a duplicate GPU, or a hang.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from unittest.mock import patch

import torch
import torch.distributed as dist

from .harness import Check, Seen, needs

NEEDS = needs(ranks=2)
SIMULATED = "which GPU is current is noted, and nothing is sent to it"
SETTINGS = {"backend": "nccl"}


def bad() -> Seen:
    with noted_gpus() as used:
        dist.init_process_group("nccl")  # DDP507
        dist.barrier()
        dist.destroy_process_group()
    return {"local rank": int(os.environ["LOCAL_RANK"]), "used": used}


def good() -> Seen:
    with noted_gpus() as used:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        dist.init_process_group("nccl")
        dist.barrier()
        dist.destroy_process_group()
    return {"local rank": int(os.environ["LOCAL_RANK"]), "used": used}


@contextmanager
def noted_gpus() -> Iterator[list[int]]:
    """A process that has just started; what torch would use is noted."""
    current = 0
    used: list[int] = []

    def set_device(index: int) -> None:
        nonlocal current
        current = index

    def collective(*args: object) -> None:
        used.append(current)

    with (
        patch.object(torch.cuda, "set_device", set_device),
        patch.multiple(dist, init_process_group=collective, barrier=collective),
        patch.object(dist, "destroy_process_group", lambda: None),
    ):
        yield used


def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]:
    title = "ranks that use a GPU which is another rank's"
    yield Check(title, _astray(bad), "==", sum(one["local rank"] > 0 for one in bad), of="bad")
    yield Check(title, _astray(good), "==", 0, of="good")
    yield Check("… of how many beyond the first of a node", _astray(bad), ">=", 1, of="bad")


def _astray(seen: Sequence[Seen]) -> int:
    return sum(any(gpu != one["local rank"] for gpu in one["used"]) for one in seen)
