"""A batch skipped on one rank only: from there on the ranks average gradients of different steps.

One sample of rank 0 is NaN.  Noted: the step that each all-reduce of a rank belonged to, and how
the loop ended.  The good loop decides on gradients that are already averaged, so that all ranks
skip together; the scaler does that without a word in the loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.optim import SGD
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from .context import device, trap
from .harness import Check, Seen, needs
from .pictures import Pairing
from .small import as_world, make_dataset, make_model

NEEDS = needs(ranks=2)
STEPS = 8
POISONED = 2
SETTINGS = {"batch": [8, 32], "steps": STEPS, "NaN": f"rank 0, step {POISONED}"}


def bad() -> Seen:
    gpu = device()
    paired: list[int] = []

    def train(group: dist.ProcessGroup) -> None:
        with as_world(group):
            model = DistributedDataParallel(make_model().to(gpu))
            note_steps(model, paired)
            optimizer = SGD(model.parameters(), lr=0.1)
            dataset = poisoned_dataset()
            sampler: DistributedSampler[Any] = DistributedSampler(dataset, shuffle=False)
            loader = DataLoader(dataset, batch_size=8, sampler=sampler)
            for inputs, targets in loader:
                loss = cross_entropy(model(inputs.to(gpu)), targets.to(gpu))
                if torch.isnan(loss):  # DDP102
                    continue  # DDP502
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()

    return {"ended": trap(train, timeout=3).status, "paired": paired}


def good() -> Seen:
    gpu = device()
    paired: list[int] = []

    def train(group: dist.ProcessGroup) -> None:
        with as_world(group):
            model = DistributedDataParallel(make_model().to(gpu))
            note_steps(model, paired)
            optimizer = SGD(model.parameters(), lr=0.1)
            scaler = torch.amp.GradScaler(gpu.type, init_scale=1024.0)
            dataset = poisoned_dataset()
            sampler: DistributedSampler[Any] = DistributedSampler(dataset, shuffle=False)
            loader = DataLoader(dataset, batch_size=8, sampler=sampler)
            for inputs, targets in loader:
                optimizer.zero_grad()
                with torch.autocast(gpu.type, torch.float16):
                    loss = cross_entropy(model(inputs.to(gpu)), targets.to(gpu))
                scaler.scale(loss).backward()
                scaler.step(optimizer)
                scaler.update()

    return {"ended": trap(train, timeout=30).status, "paired": paired}


def poisoned_dataset() -> TensorDataset:
    """A NaN in the third batch that rank 0 gets."""
    dataset = make_dataset(8 * STEPS * dist.get_world_size())
    dataset.tensors[0][8 * POISONED * dist.get_world_size(), 0] = float("nan")
    return dataset


def note_steps(model: DistributedDataParallel, paired: list[int]) -> None:
    """Append to ``paired`` the step of each gradient all-reduce, as this rank counts steps."""
    step = -1

    def count(module: nn.Module, inputs: Any) -> None:
        nonlocal step
        step += 1

    def note(state: None, bucket: Any) -> torch.futures.Future[torch.Tensor]:
        paired.append(step)
        group: Any = None  # the default group
        return allreduce_hook(group, bucket)

    note.__annotations__.clear()  # DDP compares them with classes, and here they are strings
    model.register_forward_pre_hook(count)
    model.register_comm_hook(None, note)


def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]:
    title = "all-reduces in which ranks 0 and 1 were at different steps"
    yield Check(title, _mispaired(bad), "==", STEPS - 1 - POISONED, of="bad")
    yield Check(title, _mispaired(good), "==", 0, of="good")
    title = "ranks that waited in vain"
    yield Check(title, sum(one["ended"] == "hang" for one in bad), ">=", 1, of="bad")
    yield Check(title, sum(one["ended"] != "done" for one in good), "==", 0, of="good")


def picture(bad: Sequence[Seen], good: Sequence[Seen]) -> Pairing:
    return Pairing(
        title="The step that each all-reduce belongs to, rank by rank",
        bad=[one["paired"] for one in bad],
        good=[one["paired"] for one in good],
    )


def _mispaired(seen: Sequence[Seen]) -> int:
    return sum(a != b for a, b in zip(seen[0]["paired"], seen[1]["paired"], strict=False))
