"""What a proof can ask about its surroundings.  Valid inside ``bad``, ``good``, ``evidence``."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

import torch
import torch.distributed as dist

T = TypeVar("T")


def rank() -> int:
    """This process's place in the world, from 0."""
    return int(os.environ["RANK"])


def world_size() -> int:
    """How many processes there are over all nodes."""
    return int(os.environ["WORLD_SIZE"])


def local_rank() -> int:
    """This process's place on its node, from 0."""
    return int(os.environ["LOCAL_RANK"])


def device() -> torch.device:
    """Where this rank computes: its GPU, the GPU that it shares, or the CPU."""
    raise NotImplementedError


def scratch() -> Path:
    """An empty folder for this proof, the same one on all ranks of a node; removed afterwards."""
    raise NotImplementedError


def seed_everything(seed: int) -> None:
    """Seed Python, NumPy and torch on all devices."""
    random.seed(seed)
    torch.manual_seed(seed)


@dataclass(frozen=True)
class Trapped(Generic[T]):
    """How a call in ``trap`` ended on this rank.

    ``value`` is what it returned (None unless "done"), ``error`` the text of what it raised,
    ``seconds`` how long it took: for the record, not for checks.
    """

    status: Literal["done", "hang", "error"]
    value: T | None
    seconds: float
    error: str = ""


def trap(call: Callable[[dist.ProcessGroup], T], timeout: float = 1.0) -> Trapped[T]:
    """Run ``call(group)`` where it may wait in vain, on a gloo group made for this one call.

    Every rank has to call ``trap``; all of them leave it together.  A collective that waits
    longer than ``timeout`` seconds ends as "hang", and so does one whose partner gave up.
    """
    raise NotImplementedError


def gather(value: Any) -> list[Any]:
    """What each rank passed, by rank.  Goes past the process groups: works where they hang."""
    raise NotImplementedError
