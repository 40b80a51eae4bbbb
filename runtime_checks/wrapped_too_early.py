"""An optimizer built before FSDP shards the model steps parameters that the model no longer has.

Counted: the shards of this rank that one step changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.functional import cross_entropy
from torch.optim import SGD

from .context import device, world_size
from .harness import Check, Seen, needs
from .small import agreed, make_dataset, make_model

NEEDS = needs(torch="2.6")
SETTINGS = {"batch": [16, 32], "tensors": 4}


def bad() -> Seen:
    gpu = where_fsdp_runs()
    inputs, targets = make_dataset(16)[:]
    model = make_model().to(gpu)
    optimizer = SGD(model.parameters(), lr=0.1)  # DDP513
    fully_shard(model, mesh=init_device_mesh(gpu.type, (world_size(),)))
    before = shards(model)
    loss = cross_entropy(model(inputs.to(gpu)), targets.to(gpu))
    loss.backward()
    optimizer.step()
    return {"changed": changed(before, shards(model))}


def good() -> Seen:
    gpu = where_fsdp_runs()
    inputs, targets = make_dataset(16)[:]
    model = make_model().to(gpu)
    fully_shard(model, mesh=init_device_mesh(gpu.type, (world_size(),)))
    optimizer = SGD(model.parameters(), lr=0.1)
    before = shards(model)
    loss = cross_entropy(model(inputs.to(gpu)), targets.to(gpu))
    loss.backward()
    optimizer.step()
    return {"changed": changed(before, shards(model))}


def where_fsdp_runs() -> torch.device:
    """The GPU where each rank has one; gloo lacks what FSDP needs for GPU tensors."""
    return device() if dist.get_backend() == "nccl" else torch.device("cpu")


def shards(model: nn.Module) -> list[torch.Tensor]:
    """Copies of what this rank holds of each parameter."""
    parameters: list[Any] = list(model.parameters())
    return [each.to_local().detach().clone() for each in parameters]


def changed(before: list[torch.Tensor], after: list[torch.Tensor]) -> int:
    return sum(not torch.equal(a, b) for a, b in zip(before, after, strict=True))


def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]:
    title = "tensors that a step changed"
    yield Check(title, agreed(one["changed"] for one in bad), "==", 0, of="bad")
    yield Check(title, agreed(one["changed"] for one in good), "==", 4, of="good")
