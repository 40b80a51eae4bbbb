"""A checkpoint remembers the device it was saved from: every rank restores it there, on one GPU.

Noted: the device on which each rank is asked to restore the tensors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from .context import device, scratch
from .harness import Check, Seen, needs
from .small import make_model

NEEDS = needs(ranks=2, shared_folder=True)
SIMULATED = "the file is marked as saved from cuda:0 whatever was there, and restoring is noted"
SETTINGS = {"saved by": "rank 0, from cuda:0"}


def bad() -> Seen:
    path = scratch() / "model.pt"
    model = DistributedDataParallel(make_model().to(device()))
    if dist.get_rank() == 0:
        save_from_gpu_0(model.module, path)
    dist.barrier()
    restored_on.clear()
    state = torch.load(path)  # DDP404
    model.module.load_state_dict(state)
    return {"restored on": sorted(set(restored_on))}


def good() -> Seen:
    path = scratch() / "model.pt"
    model = DistributedDataParallel(make_model().to(device()))
    if dist.get_rank() == 0:
        save_from_gpu_0(model.module, path)
    dist.barrier()
    restored_on.clear()
    state = torch.load(path, map_location="cpu")
    model.module.load_state_dict(state)
    return {"restored on": sorted(set(restored_on))}


#: The devices that ``torch.load`` asked for in this process.
restored_on: list[str] = []
_marking = False


def save_from_gpu_0(model: nn.Module, path: Path) -> None:
    """What rank 0 of a GPU machine leaves behind."""
    global _marking
    _marking = True
    torch.save(model.state_dict(), path)
    _marking = False


def _mark(storage: object) -> str | None:
    return "cuda:0" if _marking else None


def _restore(storage: Any, location: str) -> Any:
    # Noted first and, where it asks for the GPU, answered: there may be none.
    restored_on.append(location)
    return storage if location == "cuda:0" else None


# Asked before torch's own ways to tell and restore a CPU and a CUDA storage (10 and 20).
torch.serialization.register_package(5, _mark, _restore)


def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]:
    title = "devices that all ranks restore on"
    places = sorted({place for one in bad for place in one["restored on"]})
    yield Check(title, places, "==", ["cuda:0"], of="bad")
    places = sorted({place for one in good for place in one["restored on"]})
    yield Check(title, places, "==", ["cpu"], of="good")
