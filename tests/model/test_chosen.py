"""Things that are chosen at run time: out of a table, or by their name."""

from __future__ import annotations

import pytest
from astroid import nodes

from tests.model.programs import program_of


@pytest.mark.parametrize(
    ("expression", "role"),
    [
        ("{'sgd': torch.optim.SGD, 'adam': torch.optim.Adam}[name](groups)", "optimizer"),
        ("torch.optim.__dict__[name](groups)", "optimizer"),
        ("getattr(torch.optim, name)(groups)", "optimizer"),
        ("getattr(torch.optim.lr_scheduler, name)(groups)", "scheduler"),
        ("torchvision.models.__dict__[name]()", "module"),
        ("getattr(library, name)(groups)", ""),
    ],
)
def test_role(expression: str, role: str) -> None:
    text = f"import library, torch, torchvision\nname, groups = input(), []\nthing = {expression}"
    program = program_of(text)
    (assignment,) = [
        node
        for node in program.facts.modules[0].tree.body
        if isinstance(node, nodes.Assign) and node.targets[0].as_string() == "thing"
    ]
    assert "".join(program.facts.roles_of(assignment.value)) == role
