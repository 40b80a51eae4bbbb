"""Clipping before the ranks have averaged cuts each rank's share by a factor of its own.

The gradient that each ``optimizer.step()`` used is compared with the average of what the
backward passes of all ranks made, clipped afterwards.  Every second rank gets inputs ten times
as large, as a share of another recording or another customer would be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.utils import clip_grad_norm_
from torch.optim import SGD
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from .context import device
from .harness import Check, Seen, needs
from .small import make_dataset, make_model

NEEDS = needs(ranks=2)
MAX_NORM = 1.0
LOUDER = 10.0
SETTINGS = {"batch": [8, 32], "dtype": "float32", "max_norm": MAX_NORM, "louder": LOUDER}
NOT_COVERED = ("clipping by value, whose limit holds for each element by itself",)


def bad() -> Seen:
    gpu = device()
    model = make_model().to(gpu)
    optimizer = SGD(model.parameters(), lr=0.1)
    dataset = uneven_dataset()
    loader = DataLoader(dataset, batch_size=8, sampler=in_order(dataset))
    steps = AgainstTheWholeBatch(model, optimizer)
    for inputs, targets in loader:
        optimizer.zero_grad()
        cross_entropy(model(inputs.to(gpu)), targets.to(gpu)).backward()
        clip_grad_norm_(model.parameters(), MAX_NORM)  # DDP213
        average_gradients(model)
        optimizer.step()
    return steps.seen()


def good() -> Seen:
    gpu = device()
    model = make_model().to(gpu)
    optimizer = SGD(model.parameters(), lr=0.1)
    dataset = uneven_dataset()
    loader = DataLoader(dataset, batch_size=8, sampler=in_order(dataset))
    steps = AgainstTheWholeBatch(model, optimizer)
    for inputs, targets in loader:
        optimizer.zero_grad()
        cross_entropy(model(inputs.to(gpu)), targets.to(gpu)).backward()
        average_gradients(model)
        clip_grad_norm_(model.parameters(), MAX_NORM)
        optimizer.step()
    return steps.seen()


def average_gradients(model: nn.Module) -> None:
    for parameter in model.parameters():
        if parameter.grad is not None:
            dist.all_reduce(parameter.grad)
            parameter.grad /= dist.get_world_size()


def uneven_dataset() -> TensorDataset:
    """Rows of which a sampler that does not shuffle deals the larger ones to every second rank."""
    inputs, targets = make_dataset(32 * dist.get_world_size()).tensors
    ranks = torch.arange(len(inputs)) % dist.get_world_size()
    return TensorDataset(torch.where(ranks[:, None] % 2 == 1, inputs * LOUDER, inputs), targets)


def in_order(dataset: TensorDataset) -> DistributedSampler[tuple[torch.Tensor, ...]]:
    return DistributedSampler(dataset, shuffle=False)


class AgainstTheWholeBatch:
    """Sees the gradients that each step uses, beside those that it should have used.

    What it should have used is made from what each rank's backward leaves, which a hook of the
    parameters takes down before anything is done to it.
    """

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        self._parameters = list(model.parameters())
        self._made = [torch.zeros_like(each) for each in self._parameters]
        #: For each step its distance from the right gradient, as a share of that one's norm.
        self.strays: list[float] = []
        #: Its length as a share of the right one's, and the cosine of the angle between the two.
        self.lengths: list[float] = []
        self.cosines: list[float] = []
        for place, parameter in enumerate(self._parameters):
            parameter.register_post_accumulate_grad_hook(self._note(place))
        optimizer.register_step_pre_hook(self._compare)

    def _note(self, place: int) -> Callable[[torch.Tensor], None]:
        def note(parameter: torch.Tensor) -> None:
            if parameter.grad is not None:
                self._made[place].copy_(parameter.grad)

        return note

    def _compare(
        self, optimizer: torch.optim.Optimizer, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> None:
        used = _flat([each.grad for each in self._parameters if each.grad is not None])
        right = _flat(self._made)
        dist.all_reduce(right)
        right /= dist.get_world_size()
        right *= min(1.0, MAX_NORM / right.norm().item())
        self.strays.append(((used - right).norm() / right.norm()).item())
        self.lengths.append((used.norm() / right.norm()).item())
        self.cosines.append((used @ right / used.norm() / right.norm()).item())

    def seen(self) -> Seen:
        return {"strays": self.strays, "lengths": self.lengths, "cosines": self.cosines}


def _flat(tensors: list[torch.Tensor]) -> torch.Tensor:
    return torch.cat([each.detach().reshape(-1) for each in tensors])


def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]:
    title = "distance from the averaged gradient, clipped, as a share of it"
    yield Check(title, max(max(one["strays"]) for one in bad), ">", 0.1, of="bad")
    yield Check(title, max(max(one["strays"]) for one in good), "<", 1e-4, of="good")
    title = "shortest gradient used, as a share of the right one"
    yield Check(title, min(min(one["lengths"]) for one in bad), "<", 0.95, of="bad")
    yield Check(title, min(min(one["lengths"]) for one in good), "close", 1, of="good")
    title = "smallest cosine of the angle between the two"
    yield Check(title, min(min(one["cosines"]) for one in bad), "<", 0.95, of="bad")
    yield Check(title, min(min(one["cosines"]) for one in good), "close", 1, of="good")
