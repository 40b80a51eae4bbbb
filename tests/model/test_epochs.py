"""How the rule about ``set_epoch`` names the sampler: by what there is at the epoch loop."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests import markers

START = """
import os
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

def make_loader():
    data = TensorDataset(torch.randn(64, 8))
    own_sampler = DistributedSampler(data)
    own_loader = DataLoader(data, batch_size=8, num_workers=4, sampler=own_sampler)
    return own_loader

def step(model, optimizer, x):
    loss = model(x.cuda()).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
model = DistributedDataParallel(nn.Linear(8, 3).cuda())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
IN_A_CLASS = """
class Learner:
    def __init__(self, dataset):
        self.dataset = dataset

    def train(self):
        while True:
            for (x,) in enumerate(self.dataset):
                step(model, optimizer, x)

Learner(make_loader()).train()
"""
HANDED_ON = """
def epoch_of(batches):
    for (x,) in batches:
        step(model, optimizer, x)

def train(train_loader):
    for epoch in range(10):
        epoch_of(train_loader)

train(make_loader())
"""
ITERATED = """
train_loader = make_loader()
for epoch in range(10):
    for (x,) in train_loader:
        step(model, optimizer, x)
"""
MADE_HERE = """
data = TensorDataset(torch.randn(64, 8))
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=8, num_workers=4, sampler=sampler)
for epoch in range(10):
    for (x,) in loader:
        step(model, optimizer, x)
"""


@pytest.mark.parametrize(
    ("text", "sampler", "loader"),
    [
        (IN_A_CLASS, "self.dataset.sampler", "self.dataset"),
        (HANDED_ON, "train_loader.sampler", "train_loader"),
        (ITERATED, "train_loader.sampler", "train_loader"),
        (MADE_HERE, "sampler", "loader"),
    ],
)
def test_names_what_is_there(text: str, sampler: str, loader: str) -> None:
    project = markers.project_of_text(START + dedent(text))
    (message,) = (f.message for f in markers.findings(project) if f.code == "DDP301")
    assert f"call `{sampler}.set_epoch(epoch)` here, before `{loader}` is iterated" in message


CONDITIONAL = """
def make_loader(distributed):
    data = TensorDataset(torch.randn(64, 8))
    if distributed:
        sampler, shuffle = DistributedSampler(data), False
    else:
        sampler, shuffle = None, True
    return DataLoader(data, batch_size=8, num_workers=4, sampler=sampler, shuffle=shuffle)

loader = make_loader("RANK" in os.environ)
for epoch in range(10):
    for (x,) in loader:
        step(model, optimizer, x)
"""


def test_a_sampler_that_is_not_always_there() -> None:
    """The loader has a RandomSampler otherwise, which cannot be told an epoch."""
    project = markers.project_of_text(START + "import os\n" + dedent(CONDITIONAL))
    (found,) = (f for f in markers.findings(project) if f.code == "DDP301")
    assert (
        "call `loader.sampler.set_epoch(epoch)` here where it is a `DistributedSampler`, before"
        in found.message
    )
    assert found.fix is None
