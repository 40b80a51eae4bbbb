"""What a proof can ask about its surroundings.  Valid inside ``bad``, ``good``, ``evidence``."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

import numpy as np
import torch
import torch.distributed as dist

from .world import Meeting

T = TypeVar("T")


@dataclass(frozen=True)
class Surroundings:
    """What the worker tells this module before it runs a proof."""

    device: torch.device
    scratch: Path
    meeting: Meeting
    #: By how much ``trap`` waits longer than it was told to.
    patience: float = 1.0


_now: Surroundings | None = None


def enter(surroundings: Surroundings) -> None:
    """Called by the worker before each side."""
    global _now
    _now = surroundings


def _surroundings() -> Surroundings:
    if _now is None:
        raise RuntimeError("only code that the suite runs can ask this: no proof is running")
    return _now


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
    return _surroundings().device


def scratch() -> Path:
    """An empty folder for this proof, the same one on all ranks of a node; removed afterwards.

    With ``needs(shared_folder=True)`` it is the same one on all ranks of all nodes.
    """
    return _surroundings().scratch


def seed_everything(seed: int) -> None:
    """Seed Python, NumPy and torch on all devices.  Done before ``bad`` and before ``good``."""
    random.seed(seed)
    np.random.seed(seed)
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


_GAVE_UP = ("timed out", "timeout", "connection closed by peer", "connection reset by peer")


def trap(call: Callable[[dist.ProcessGroup], T], timeout: float = 1.0) -> Trapped[T]:
    """Run ``call(group)`` where it may wait in vain, on a gloo group made for this one call.

    Every rank has to call ``trap``; all of them leave it together.  A collective that waits
    longer than ``timeout`` seconds ends as "hang", and so does one whose partner gave up.  In
    ``good`` it is five times that: nothing should hang there, and a busy machine is no defect.
    """
    patience = timedelta(seconds=timeout * _surroundings().patience)
    group = dist.new_group(backend="gloo", timeout=patience)
    gather("entered")
    began = time.perf_counter()
    status: Literal["done", "hang", "error"] = "done"
    value, error = None, ""
    try:
        value = call(group)
    except RuntimeError as raised:
        error = str(raised)
        status = "hang" if any(words in error.lower() for words in _GAVE_UP) else "error"
    seconds = time.perf_counter() - began
    # Its connections must outlive the last rank that still waits on them.
    gather("left")
    return Trapped(status, value, seconds, error)


def gather(value: Any) -> list[Any]:
    """What each rank passed, by rank.  Goes past the process groups: works where they hang."""
    return _surroundings().meeting.gather(value)
