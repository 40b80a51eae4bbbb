"""Where autograd records: by contexts, decorators, callers."""

from __future__ import annotations

import pytest
from astroid import nodes

from ddp_lint.model.grad_mode import GradMode
from tests.model.programs import program_of

HEAD = """\
import contextlib
import torch
from elsewhere import some_context


@contextlib.contextmanager
def quietly():
    with torch.no_grad():
        yield


def forward(net):
    return net
"""


@pytest.mark.parametrize(
    ("lines", "mode"),
    [
        ("forward(1)", "on"),
        ("with torch.no_grad(): forward(1)", "off"),
        ("with torch.inference_mode(): forward(1)", "off"),
        ("with torch.set_grad_enabled(False): forward(1)", "off"),
        ("with torch.set_grad_enabled(flag): forward(1)", "unknown"),
        ("with torch.no_grad():\n  with torch.enable_grad(): forward(1)", "on"),
        ("with torch.autocast('cuda'): forward(1)", "on"),
        ("with some_context(): forward(1)", "unknown"),
        ("with contexts[0]: forward(1)", "unknown"),
        ("with quietly(): forward(1)", "off"),
        ("with torch.no_grad() if flag else torch.enable_grad(): forward(1)", "unknown"),
        (
            "with contextlib.ExitStack() as stack:\n"
            "  stack.enter_context(torch.no_grad())\n"
            "  forward(1)",
            "off",
        ),
        ("@torch.no_grad()\ndef use(): forward(1)\nuse()", "off"),
        ("def use(): forward(1)\nwith torch.no_grad(): use()", "off"),
        ("def use(): forward(1)\nwith torch.no_grad(): use()\nuse()", "on"),
    ],
)
def test_mode(lines: str, mode: str) -> None:
    facts = program_of(f"{HEAD}\nflag, contexts = input(), input()\n{lines}\n").facts
    (call,) = [
        node
        for node, _ in facts.calls
        if isinstance(node.func, nodes.Name) and node.func.name == "forward"
    ]
    assert GradMode(facts).at(call) == mode
