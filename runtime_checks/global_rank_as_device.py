"""The global rank as a device index: from the second node on, that GPU does not exist.

Noted: the index that each rank asks for, and whether its node has such a GPU.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from unittest.mock import patch

import torch
import torch.distributed as dist

from .context import rank
from .harness import Check, Seen, needs

NEEDS = needs(ranks=2)
SIMULATED = "each rank is told that it is alone on a node with one GPU; choosing it is only noted"
SETTINGS = {"nodes": "one per rank", "GPUs per node": 1}


def bad() -> Seen:
    with one_gpu_per_node() as asked:
        try:
            torch.cuda.set_device(dist.get_rank())  # DDP506
        except RuntimeError:
            return {"asked": asked, "refused": True}
    return {"asked": asked, "refused": False}


def good() -> Seen:
    with one_gpu_per_node() as asked:
        try:
            torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        except RuntimeError:
            return {"asked": asked, "refused": True}
    return {"asked": asked, "refused": False}


@contextmanager
def one_gpu_per_node() -> Iterator[list[int]]:
    """What a rank finds when torchrun started one process on each node."""
    asked: list[int] = []

    def set_device(index: int) -> None:
        asked.append(index)
        if index >= 1:
            raise RuntimeError("CUDA error: invalid device ordinal")

    told = {"LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1", "GROUP_RANK": str(rank())}
    with patch.dict(os.environ, told), patch.object(torch.cuda, "set_device", set_device):
        yield asked


def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]:
    title = "ranks that ask for a GPU that is not there"
    yield Check(title, sum(one["refused"] for one in bad), "==", len(bad) - 1, of="bad")
    yield Check(title, sum(one["refused"] for one in good), "==", 0, of="good")
    title = "indices asked for"
    asked = [index for one in bad for index in one["asked"]]
    yield Check(title, asked, "==", list(range(len(bad))), of="bad")
    asked = [index for one in good for index in one["asked"]]
    yield Check(title, asked, "==", [0 for _ in good], of="good")
