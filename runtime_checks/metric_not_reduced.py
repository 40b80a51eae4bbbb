"""A sharded evaluation that nobody reduces: each rank reports the accuracy of its own share.

The accuracy that each rank reports is compared with that of one pass over everything.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, Subset

from .context import device
from .harness import Check, Seen, needs
from .small import make_dataset, make_model

NEEDS = needs(ranks=2)
SAMPLES = 101
log = logging.getLogger(__name__)
SETTINGS = {"batch": [8, 32], "samples": SAMPLES}


def bad() -> Seen:
    gpu = device()
    dataset = make_dataset(SAMPLES)
    model = make_model().to(gpu).eval()
    shard = Subset(dataset, range(dist.get_rank(), len(dataset), dist.get_world_size()))
    loader = DataLoader(shard, batch_size=8)
    correct = torch.zeros((), device=gpu, dtype=torch.int64)
    total = torch.zeros((), device=gpu, dtype=torch.int64)
    with torch.no_grad():
        for inputs, targets in loader:  # DDP512
            correct += (model(inputs.to(gpu)).argmax(dim=1) == targets.to(gpu)).sum()
            total += len(targets)
    accuracy = (correct / total).item()
    log.info("accuracy %.4f", accuracy)
    return {"accuracy": accuracy, "true accuracy": true_accuracy(model)}


def good() -> Seen:
    gpu = device()
    dataset = make_dataset(SAMPLES)
    model = make_model().to(gpu).eval()
    shard = Subset(dataset, range(dist.get_rank(), len(dataset), dist.get_world_size()))
    loader = DataLoader(shard, batch_size=8)
    correct = torch.zeros((), device=gpu, dtype=torch.int64)
    total = torch.zeros((), device=gpu, dtype=torch.int64)
    with torch.no_grad():
        for inputs, targets in loader:
            correct += (model(inputs.to(gpu)).argmax(dim=1) == targets.to(gpu)).sum()
            total += len(targets)
    dist.all_reduce(correct)
    dist.all_reduce(total)
    accuracy = (correct / total).item()
    log.info("accuracy %.4f", accuracy)
    return {"accuracy": accuracy, "true accuracy": true_accuracy(model)}


def true_accuracy(model: nn.Module) -> float:
    """From one pass over the whole dataset."""
    inputs, targets = make_dataset(SAMPLES)[:]
    with torch.no_grad():
        right = model(inputs.to(device())).argmax(dim=1) == targets.to(device())
    return float(right.sum() / len(targets))


def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]:
    title = "largest error of a reported accuracy"
    yield Check(title, max(map(_error, bad)), ">", 0.005, of="bad")
    yield Check(title, max(map(_error, good)), "<", 1e-6, of="good")
    reported = len({one["accuracy"] for one in bad})
    yield Check("different answers among the ranks", reported, ">", 1, of="bad")
    reported = len({one["accuracy"] for one in good})
    yield Check("different answers among the ranks", reported, "==", 1, of="good")


def _error(one: Seen) -> float:
    return abs(float(one["accuracy"] - one["true accuracy"]))
