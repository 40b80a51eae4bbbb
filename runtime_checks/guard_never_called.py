"""A guard that tests the function instead of its answer is true on every rank.

Counted: the ranks that get past it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
import torch.distributed as dist

from .context import scratch
from .harness import Check, Seen, needs
from .probes import writers
from .small import make_model

NEEDS = needs(ranks=2, shared_folder=True)
SETTINGS = {"saves": 1}


def is_main_process() -> bool:
    return dist.get_rank() == 0


def bad() -> Seen:
    path = scratch() / "model.pt"
    model = make_model()
    with writers() as writes:
        if is_main_process:  # type: ignore[truthy-function]  # DDP406
            torch.save(model.state_dict(), path)
        dist.barrier()
    return {"written": sum(writes.by_path.values())}


def good() -> Seen:
    path = scratch() / "model.pt"
    model = make_model()
    with writers() as writes:
        if is_main_process():
            torch.save(model.state_dict(), path)
        dist.barrier()
    return {"written": sum(writes.by_path.values())}


def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]:
    title = "ranks past the guard"
    yield Check(title, sum(one["written"] > 0 for one in bad), "==", len(bad), of="bad")
    yield Check(title, sum(one["written"] > 0 for one in good), "==", 1, of="good")
