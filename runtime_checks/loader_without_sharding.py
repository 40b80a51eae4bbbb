"""A plain loader under DDP: each rank trains on all samples, so more ranks save no time.

Noted: which samples the dataset of each rank was asked for in one epoch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.optim import SGD
from torch.utils.data import DataLoader, DistributedSampler

from .context import device
from .harness import Check, Seen, needs
from .small import Noted, make_model

NEEDS = needs(ranks=2)
SAMPLES = 128
SETTINGS = {"batch": [16, 32], "samples": SAMPLES}


def bad() -> Seen:
    gpu = device()
    dataset = Noted(SAMPLES)
    loader = DataLoader(dataset, batch_size=16, shuffle=True)  # DDP304
    model = DistributedDataParallel(make_model().to(gpu))
    optimizer = SGD(model.parameters(), lr=0.1)
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = cross_entropy(model(inputs.to(gpu)), targets.to(gpu))
        loss.backward()
        optimizer.step()
    return {"asked": dataset.asked}


def good() -> Seen:
    gpu = device()
    dataset = Noted(SAMPLES)
    loader = DataLoader(dataset, batch_size=16, sampler=DistributedSampler(dataset))
    model = DistributedDataParallel(make_model().to(gpu))
    optimizer = SGD(model.parameters(), lr=0.1)
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = cross_entropy(model(inputs.to(gpu)), targets.to(gpu))
        loss.backward()
        optimizer.step()
    return {"asked": dataset.asked}


def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]:
    title = "samples read on all ranks together, over the samples there are"
    read = sum(len(one["asked"]) for one in bad) / SAMPLES
    yield Check(title, read, "==", float(len(bad)), of="bad")
    # DistributedSampler pads to a multiple of the world: less than one sample a rank.
    read = sum(len(one["asked"]) for one in good) / SAMPLES
    yield Check(title, read, "close", 1.0, of="good", rel=len(good) / SAMPLES)
    title = "samples that ranks 0 and 1 both saw"
    shared = set(bad[0]["asked"]) & set(bad[1]["asked"])
    yield Check(title, len(shared), "==", SAMPLES, of="bad")
    shared = set(good[0]["asked"]) & set(good[1]["asked"])
    yield Check(title, len(shared), "<", len(good), of="good")
