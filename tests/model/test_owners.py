"""Whose parameters: yes, no, and where it cannot be told."""

from __future__ import annotations

import pytest

from tests.model.programs import program_of

HEAD = """\
import itertools
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.nn.utils import clip_grad_norm_

first, second = nn.Linear(2, 2), nn.Linear(2, 2)
"""


def held(optimizer: str, clipped: str) -> bool | None:
    """Whether the optimizer holds what is clipped."""
    text = f"""{HEAD}
optimizer = torch.optim.SGD({optimizer}, lr=0.1)
for batch in []:
    second(first(batch)).backward()
    clip_grad_norm_({clipped}, 1.0)
    optimizer.step()
"""
    training = program_of(text).training
    (update,) = training.updates
    ((clip, step),) = [(w.of_kind("clip")[0], w.of_kind("step")[0]) for w in update.ways]
    assert step.move.target is not None
    return training.owners.holds(step.move.target, step.frame, clip.move.target, clip.frame)


@pytest.mark.parametrize(
    ("optimizer", "clipped", "expected"),
    [
        ("first.parameters()", "first.parameters()", True),
        ("first.parameters()", "second.parameters()", False),
        ("first.parameters()", "DDP(first).parameters()", True),
        ("first.parameters()", "optimizer.param_groups[0]['params']", True),
        ("itertools.chain(first.parameters(), second.parameters())", "second.parameters()", True),
        ("[{'params': first.parameters()}]", "second.parameters()", False),
        ("[p for p in first.parameters() if p.requires_grad]", "first.parameters()", True),
        ("first.parameters()", "first.inner.parameters()", None),
        ("groups_of(first)", "second.parameters()", None),
    ],
)
def test_held(optimizer: str, clipped: str, expected: bool | None) -> None:
    assert held(optimizer, clipped) is expected
