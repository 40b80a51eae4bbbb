"""Schedules that advance too early: what is shown of the loop, and where they may be moved."""

from __future__ import annotations

import pytest

from tests.model.programs import program_of

HEAD = """\
import torch
from torch.utils.data import DataLoader, TensorDataset

loader = DataLoader(TensorDataset(torch.randn(64, 8)))
model = torch.nn.Linear(8, 8).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 1.1)
"""
PER_STEP = """\
for (images,) in loader:
    schedule.step()
    optimizer.zero_grad()
    model(images.cuda()).mean().backward()
    optimizer.step()
"""
PER_EPOCH = """\
for _ in range(10):
    schedule.step()
    for (images,) in loader:
        optimizer.zero_grad()
        model(images.cuda()).mean().backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("loop", "says"), [(PER_STEP, "each iteration is a step"), (PER_EPOCH, "runs many steps")]
)
def test_the_loop_is_shown_as_what_it_is(loop: str, says: str) -> None:
    (found,) = program_of(HEAD + loop).early_schedules
    assert says in found.chain[0].message


@pytest.mark.parametrize(
    ("last", "moves"),
    [
        ("    print(len(images))\n", True),
        ("    print(optimizer.param_groups[0]['lr'])\n", False),
        ("    print(schedule.get_last_lr())\n", False),
    ],
)
def test_a_rate_that_is_read_later_stays_the_steps(last: str, moves: bool) -> None:
    (found,) = program_of(HEAD + PER_STEP + last).early_schedules
    assert (found.fix is not None) == moves
