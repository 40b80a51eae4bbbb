"""A rank that waits alone waits in vain; two that wait go on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch.distributed as dist

from runtime_checks.context import rank, trap, world_size
from runtime_checks.harness import Check, Seen, needs

NEEDS = needs(ranks=2)


def bad() -> Seen:
    def alone(group: dist.ProcessGroup) -> None:
        if rank() == 0:
            dist.barrier(group)  # DDP501

    return {"ended": trap(alone).status}


def good() -> Seen:
    return {"ended": trap(dist.barrier).status}


def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]:
    ended = [seen["ended"] for seen in bad]
    yield Check("ended", ended, "==", ["hang"] + ["done"] * (world_size() - 1), of="bad")
    yield Check(
        "ended", [seen["ended"] for seen in good], "==", ["done"] * world_size(), of="good"
    )
