"""What many proofs share: a classifier that trains in milliseconds, its data, and two watches.

The shapes are chosen so that fp16 on a CPU stays quick and that nothing is special: inputs
[samples, 32] in float32, ten classes, one hidden layer.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed import distributed_c10d
from torch.utils.data import Dataset, TensorDataset

from .context import scratch

T = TypeVar("T")

FEATURES = 32
CLASSES = 10


def make_dataset(samples: int = 64) -> TensorDataset:
    """``samples`` pairs of a float32 row [32] and a class, the same ones on every rank."""
    draw = torch.Generator().manual_seed(1)
    inputs = torch.randn(samples, FEATURES, generator=draw)
    targets = torch.randint(0, CLASSES, (samples,), generator=draw)
    return TensorDataset(inputs, targets)


def make_model() -> nn.Sequential:
    """The classifier, with the same parameters on every rank and in every run."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(FEATURES, 64), nn.ReLU(), nn.Linear(64, CLASSES))


def make_image_model() -> nn.Sequential:
    """A classifier of images [batch, 3, height, width] of any size."""
    torch.manual_seed(0)
    return nn.Sequential(nn.AdaptiveAvgPool2d(8), nn.Flatten(), nn.Linear(192, CLASSES))


class Noted(Dataset[tuple[torch.Tensor, torch.Tensor]]):
    """The dataset of ``make_dataset`` that notes which sample it was asked for, in order."""

    def __init__(self, samples: int = 64) -> None:
        self.data = make_dataset(samples)
        self.asked: list[int] = []

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        self.asked.append(index)
        inputs, target = self.data[index]
        return inputs, target

    def epochs(self, count: int) -> list[list[int]]:
        """What was asked for, cut into ``count`` epochs of equal length."""
        size = len(self.asked) // count
        return [self.asked[size * epoch : size * (epoch + 1)] for epoch in range(count)]


class Updates:
    """Sees the gradients that each ``optimizer.step()`` uses, beside those that backward made.

    It hangs on hooks of the optimizer and of the parameters, so the loop needs no line for it.
    With a ``GradScaler`` only the steps that it lets through count.
    """

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        self._parameters = list(model.parameters())
        self._fresh = [torch.zeros_like(each) for each in self._parameters]
        #: L2 norm of the gradient each step used.
        self.norms: list[float] = []
        #: Distance of that gradient from the sum of all backwards since the step before, as a
        #: share of that sum's norm: 0 where the step used just what its backwards made.
        self.strays: list[float] = []
        #: Learning rate of the first parameter group in each step.
        self.rates: list[float] = []
        for place, parameter in enumerate(self._parameters):
            parameter.register_hook(self._note_fresh(place))
        optimizer.register_step_pre_hook(self._note_step)

    def _note_fresh(self, place: int) -> Callable[[torch.Tensor], None]:
        def note(gradient: torch.Tensor) -> None:
            self._fresh[place] += gradient.detach()

        return note

    def _note_step(
        self, optimizer: torch.optim.Optimizer, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> None:
        used = _flat([each.grad for each in self._parameters if each.grad is not None])
        fresh = _flat(self._fresh)
        self.norms.append(used.norm().item())
        self.strays.append(((used - fresh).norm() / fresh.norm()).item())
        self.rates.append(optimizer.param_groups[0]["lr"])
        for each in self._fresh:
            each.zero_()


def gradient_norm(model: nn.Module, loss: torch.Tensor) -> float:
    """L2 norm of the gradient of ``loss``, taken aside: no ``.grad`` changes."""
    return float(_flat(list(torch.autograd.grad(loss, list(model.parameters())))).norm())


def parameters_of(model: nn.Module) -> torch.Tensor:
    """A copy of all parameters as one float32 vector."""
    return _flat([each.detach() for each in model.parameters()]).clone()


def _flat(tensors: list[torch.Tensor]) -> torch.Tensor:
    return torch.cat([each.detach().reshape(-1).float() for each in tensors])


_folders = itertools.count()


def new_folder() -> Path:
    """A folder that nobody has used yet: the n-th call on every rank gets the same one."""
    folder = scratch() / f"new-{next(_folders)}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def leave_default_group() -> None:
    """Forget the group that is there, as a process that has just started has none."""
    if dist.is_initialized():
        dist.destroy_process_group()


@contextmanager
def as_world(group: dist.ProcessGroup) -> Iterator[None]:
    """Let calls that name no process group use ``group``: a hang stays in it."""
    world = distributed_c10d._get_default_group()
    distributed_c10d._update_default_pg(group)
    try:
        yield
    finally:
        distributed_c10d._update_default_pg(world)


def agreed(values: Iterable[T]) -> T | list[T]:
    """The value that all ranks saw; all of them where they differ, which equals no one value."""
    values = list(values)
    return values[0] if all(value == values[0] for value in values) else values
