"""A collective that only rank 0 calls meets the others' next one: wrong numbers, then a hang.

Rank 0 averages its loss for the log; the other ranks go on to the sum of the metric.  The two
pair up.  Noted on each rank: the sum that it got, and whether it waited in vain.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
import torch.distributed as dist

from .context import device, trap
from .harness import Check, Seen, needs
from .small import agreed, as_world

NEEDS = needs(ranks=2)
SETTINGS = {"metric of rank r": "10 (r + 1)", "loss": 1.0}


def bad() -> Seen:
    loss = torch.ones(1, device=device())
    metric = torch.full((1,), 10.0 * (dist.get_rank() + 1), device=device())

    def log_and_sum(group: dist.ProcessGroup) -> float:
        with as_world(group):
            if dist.get_rank() == 0:
                dist.all_reduce(loss)  # DDP501
            dist.all_reduce(metric)
            return metric.item()

    ended = trap(log_and_sum, timeout=2)
    return {"ended": ended.status, "sum": ended.value, "true sum": true_sum()}


def good() -> Seen:
    loss = torch.ones(1, device=device())
    metric = torch.full((1,), 10.0 * (dist.get_rank() + 1), device=device())

    def log_and_sum(group: dist.ProcessGroup) -> float:
        with as_world(group):
            dist.all_reduce(loss)
            dist.all_reduce(metric)
            return metric.item()

    ended = trap(log_and_sum, timeout=30)
    return {"ended": ended.status, "sum": ended.value, "true sum": true_sum()}


def true_sum() -> float:
    return sum(10.0 * (rank + 1) for rank in range(dist.get_world_size()))


def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]:
    title = "rank 0 ends as"
    yield Check(title, bad[0]["ended"], "==", "hang", of="bad")
    yield Check(title, good[0]["ended"], "==", "done", of="good")
    # The other ranks notice nothing: rank 0's loss of 1 stands where its metric of 10 should.
    title = "sum of the metric that the other ranks got, minus the true one"
    errors = [one["sum"] - one["true sum"] for one in bad[1:] if one["sum"] is not None]
    yield Check(title, agreed(errors), "==", -9.0, of="bad")
    errors = [one["sum"] - one["true sum"] for one in good if one["sum"] is not None]
    yield Check(title, agreed(errors), "==", 0.0, of="good")
    yield Check("ranks that finished", _finished(bad), "==", len(bad) - 1, of="bad")
    yield Check("ranks that finished", _finished(good), "==", len(good), of="good")


def _finished(seen: Sequence[Seen]) -> int:
    return sum(one["ended"] == "done" for one in seen)
