"""Its good side raises on one rank while the other waits for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
import torch.distributed as dist

from runtime_checks.context import rank
from runtime_checks.harness import Check, Seen


def bad() -> Seen:
    return {}


def good() -> Seen:
    if rank() == 0:
        raise KeyError("no such thing")
    dist.all_reduce(torch.zeros(1))
    return {}


def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]:
    yield Check("reached", True, "==", True, of="bad")
    yield Check("reached", True, "==", True, of="good")
