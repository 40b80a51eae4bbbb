"""A guard by the local rank lets one rank of every node write the same file.

Counted: the ranks that write the path.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from unittest.mock import patch

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from .context import device, scratch
from .harness import Check, Seen, needs
from .probes import writers
from .small import make_model

NEEDS = needs(ranks=2, shared_folder=True)
SIMULATED = "each rank is told that it is the only one of its node: LOCAL_RANK is 0"
SETTINGS = {"nodes": "one per rank"}

# What torchrun sets on a node that runs one process.
alone_on_a_node = patch.dict(os.environ, LOCAL_RANK="0", LOCAL_WORLD_SIZE="1")


@alone_on_a_node
def bad() -> Seen:
    path = scratch() / "model.pt"
    local_rank = int(os.environ["LOCAL_RANK"])
    model = DistributedDataParallel(make_model().to(device()))
    with writers() as writes:
        if local_rank == 0:
            torch.save(model.module.state_dict(), path)  # DDP402
        dist.barrier()
    return {"written": sum(writes.by_path.values())}


@alone_on_a_node
def good() -> Seen:
    path = scratch() / "model.pt"
    model = DistributedDataParallel(make_model().to(device()))
    with writers() as writes:
        if dist.get_rank() == 0:
            torch.save(model.module.state_dict(), path)
        dist.barrier()
    return {"written": sum(writes.by_path.values())}


def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]:
    title = "ranks that write the file"
    yield Check(title, sum(one["written"] > 0 for one in bad), "==", len(bad), of="bad")
    yield Check(title, sum(one["written"] > 0 for one in good), "==", 1, of="good")
