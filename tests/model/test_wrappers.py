"""Whether a value is the wrapper, or the model inside."""

from __future__ import annotations

import pytest
from astroid import nodes

from ddp_lint.model.states import PREFIXING
from ddp_lint.model.wrappers import inner_of, is_wrapper
from tests.model.programs import program_of

SETUP = """
import os
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
distributed = int(os.environ["WORLD_SIZE"]) > 1
plain = nn.Linear(3, 3)
model = DDP(plain)
def unwrap(one):
    return one.module if hasattr(one, "module") else one
def use(one):
    pass
"""


@pytest.mark.parametrize(
    ("value", "wrapped"),
    [
        ("model", True),
        ("DDP(plain) if distributed else plain", True),
        ("plain", False),
        ("model.module", False),
        ("model.module if distributed else model", False),
        ("unwrap(model)", False),
        ("getattr(model, 'module', model)", False),
    ],
)
def test_values(value: str, wrapped: bool) -> None:
    program = program_of(f"{SETUP}value = {value}\nuse(value)\n")
    (node,) = (
        call.args[0]
        for call, _ in program.facts.calls
        if isinstance(call.func, nodes.Name) and call.func.name == "use"
    )
    assert is_wrapper(program.facts, node, PREFIXING) is wrapped
    assert (inner_of(program.facts, node) is not None) == ("module" in value or "unwrap" in value)
