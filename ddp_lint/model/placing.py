"""Layer 9, placing: which device an expression names."""

from __future__ import annotations

from astroid import nodes

from ddp_lint.model.facts import Facts
from ddp_lint.model.origins import Expression, Made, Origin
from ddp_lint.model.tree import Node


def is_cuda(facts: Facts, node: Node) -> bool:
    """Whether a device is a GPU wherever there is one, for certain."""
    if isinstance(node, nodes.IfExp) and "is_available" in node.test.as_string():
        return is_cuda(facts, node.body)
    origins = facts.origins(node)
    return bool(origins) and all(_names(facts, origin, "cuda") for origin in origins)


def is_cpu(facts: Facts, node: Node) -> bool:
    """Whether a device is the CPU, for certain."""
    origins = facts.origins(node)
    return bool(origins) and all(_names(facts, origin, "cpu") for origin in origins)


def _names(facts: Facts, origin: Origin, device: str) -> bool:
    match origin:
        case Made(name="torch.device", call=call) if call.args:
            asks = is_cuda if device == "cuda" else is_cpu
            return asks(facts, call.args[0])
        case Expression(node=nodes.Const(value=str(value))):
            return value.startswith(device)
        case Expression(node=nodes.JoinedStr(values=[nodes.Const(value=str(value)), *_])):
            return value.startswith(device)
    return False
