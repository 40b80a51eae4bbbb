"""A sharded save under a rank guard: it talks to all ranks, and the guarded one waits in vain.

Noted: how the save ended on each rank, and which ranks' shards the checkpoint holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch.distributed as dist
import torch.distributed.checkpoint as dcp

from .context import device, trap
from .harness import Check, Seen, needs
from .small import agreed, as_world, make_model, new_folder

NEEDS = needs(ranks=2, shared_folder=True)
SETTINGS = {"format": "torch.distributed.checkpoint"}


def bad() -> Seen:
    folder = new_folder()
    state = {"model": make_model().to(device()).state_dict()}

    def save(group: dist.ProcessGroup) -> None:
        with as_world(group):
            if dist.get_rank() == 0:
                dcp.save(state, checkpoint_id=folder)  # type: ignore[attr-defined]  # DDP407

    ended = trap(save, timeout=2)
    return {"ended": ended.status, "complete": (folder / ".metadata").exists()}


def good() -> Seen:
    folder = new_folder()
    state = {"model": make_model().to(device()).state_dict()}

    def save(group: dist.ProcessGroup) -> None:
        with as_world(group):
            dcp.save(state, checkpoint_id=folder)  # type: ignore[attr-defined]

    ended = trap(save, timeout=30)
    return {"ended": ended.status, "complete": (folder / ".metadata").exists()}


def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]:
    title = "rank 0 ends as"
    yield Check(title, bad[0]["ended"], "==", "hang", of="bad")
    yield Check(title, good[0]["ended"], "==", "done", of="good")
    title = "checkpoint complete"
    yield Check(title, agreed(one["complete"] for one in bad), "==", False, of="bad")
    yield Check(title, agreed(one["complete"] for one in good), "==", True, of="good")
