"""A DistributedSampler pads the shards to one length: an evaluation over it counts samples twice.

The model is untrained: what matters is which samples are counted.  Counted samples and
right answers are compared with one pass over the whole dataset, in integers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, Subset, TensorDataset

from .context import device
from .harness import Check, Seen, needs
from .pictures import Bars
from .small import agreed, make_dataset, make_model

NEEDS = needs(ranks=2)
SETTINGS = {"batch": [8, 32], "samples": "world x 50 + 1"}


def bad() -> Seen:
    gpu = device()
    dataset = make_dataset(uneven())
    model = DistributedDataParallel(make_model().to(gpu)).eval()
    sampler: DistributedSampler[Any] = DistributedSampler(dataset, shuffle=False)  # DDP305
    loader = DataLoader(dataset, batch_size=8, sampler=sampler)
    correct = torch.zeros((), device=gpu, dtype=torch.int64)
    total = torch.zeros((), device=gpu, dtype=torch.int64)
    with torch.no_grad():
        for inputs, targets in loader:
            outputs = model(inputs.to(gpu))
            correct += (outputs.argmax(dim=1) == targets.to(gpu)).sum()
            total += len(targets)
    dist.all_reduce(correct)
    dist.all_reduce(total)
    return {"correct": correct.item(), "counted": total.item()} | truth(model.module, dataset)


def good() -> Seen:
    gpu = device()
    dataset = make_dataset(uneven())
    model = DistributedDataParallel(make_model().to(gpu)).eval()
    shard = Subset(dataset, range(dist.get_rank(), len(dataset), dist.get_world_size()))
    loader = DataLoader(shard, batch_size=8)
    correct = torch.zeros((), device=gpu, dtype=torch.int64)
    total = torch.zeros((), device=gpu, dtype=torch.int64)
    with torch.no_grad():
        for inputs, targets in loader:
            outputs = model.module(inputs.to(gpu))
            correct += (outputs.argmax(dim=1) == targets.to(gpu)).sum()
            total += len(targets)
    dist.all_reduce(correct)
    dist.all_reduce(total)
    return {"correct": correct.item(), "counted": total.item()} | truth(model.module, dataset)


def uneven() -> int:
    """A number of samples that leaves one over when it is dealt to all ranks."""
    return dist.get_world_size() * 50 + 1


def truth(model: nn.Module, dataset: TensorDataset) -> Seen:
    """The same numbers from one pass over everything."""
    inputs, targets = dataset[:]
    with torch.no_grad():
        right = (model(inputs.to(device())).argmax(dim=1) == targets.to(device())).sum()
    return {"true correct": right.item(), "samples": len(dataset)}


def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]:
    title = "samples counted beyond those there are"
    extra = agreed(one["counted"] - one["samples"] for one in bad)
    yield Check(title, extra, "==", len(bad) - 1, of="bad")
    extra = agreed(one["counted"] - one["samples"] for one in good)
    yield Check(title, extra, "==", 0, of="good")
    wrong = {abs(_accuracy(one) - _true_accuracy(one)) for one in bad}
    yield Check("error of the accuracy", min(wrong), ">", 1e-4, of="bad")
    right = agreed(one["correct"] - one["true correct"] for one in good)
    yield Check("right answers counted beyond those there are", right, "==", 0, of="good")


def picture(bad: Sequence[Seen], good: Sequence[Seen]) -> Bars:
    return Bars(
        title="Samples in the metric",
        y_label="samples",
        bars={
            "there are": good[0]["samples"],
            "bad: counted": bad[0]["counted"],
            "good: counted": good[0]["counted"],
        },
    )


def _accuracy(one: Seen) -> float:
    return float(one["correct"] / one["counted"])


def _true_accuracy(one: Seen) -> float:
    return float(one["true correct"] / one["samples"])
