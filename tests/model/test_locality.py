"""Whether a value is one rank's own, or the same on all of them."""

from __future__ import annotations

import pytest
from astroid import nodes

from ddp_lint.model.frames import Frame
from ddp_lint.model.locality import Locality
from tests.model.programs import program_of

SETUP = """
import time
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset

def mean(value):
    value = value.clone()
    dist.all_reduce(value)
    return value

model = DDP(nn.Linear(3, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(torch.randn(8, 3)))
began = time.time()
for step, (inputs,) in enumerate(loader):
    loss = model(inputs).mean()
    reduced = mean(loss.detach())
    summed = loss.detach().clone()
    dist.all_reduce(summed)
    optimizer.zero_grad()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    use({value})
"""


@pytest.mark.parametrize(
    ("value", "answer"),
    [
        ("loss", "local"),
        ("loss.item()", "local"),
        ("torch.isnan(loss)", "local"),
        ("time.time() - began", "local"),
        ("inputs.isnan().any()", "batch"),
        ("inputs.shape", "equal"),
        ("step", "equal"),
        ("optimizer.param_groups[0]['lr']", "equal"),
        ("reduced", "reduced"),
        ("summed.item()", "reduced"),
        ("torch.isfinite(norm)", "reduced"),
        ("model.module.weight.grad", "reduced"),
        ("something", None),
    ],
)
def test_values(value: str, answer: str | None) -> None:
    program = program_of(SETUP.replace("{value}", value))
    facts = program.facts
    ((node, unit),) = (
        (call.args[0], unit)
        for call, unit in facts.calls
        if isinstance(call.func, nodes.Name) and call.func.name == "use"
    )
    assert facts.once(Locality).of(node, Frame(unit)) == answer
