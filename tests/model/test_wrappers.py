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


def test_functions_that_return_each_other_are_asked_once() -> None:
    """Each of them leads to all others: the ways through them are more than can be gone."""
    number = 12
    functions = "".join(
        f"def step{one}(x):\n"
        + "".join(
            f"    if x is {other}:\n        return step{other}(x)\n" for other in range(number)
        )
        + "    return x\n"
        for one in range(number)
    )
    program = program_of(f"{SETUP}{functions}value = step0(plain)\nuse(value)\n")
    ((call, _),) = [
        (call, unit)
        for call, unit in program.facts.calls
        if getattr(call.func, "name", "") == "use"
    ]
    assert inner_of(program.facts, call.args[0]) is None
