"""Layer 9, placing: which device an expression names."""

from __future__ import annotations

import re

from astroid import nodes

from ddp_lint.model.facts import Facts
from ddp_lint.model.origins import Expression, Made, Origin
from ddp_lint.model.tree import Node, walk

#: Accelerators for which PyTorch's loaders pin nothing, or which it takes where there are such.
_OTHERS = re.compile(r"(mps|xpu|hpu|npu)(:\d+)?$")
_SPEAKING_OF_OTHERS = re.compile(rb"\b(mps|xpu|hpu|npu|accelerator)\b")


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


def may_be_another(facts: Facts, node: Node) -> bool:
    """Whether a device may be an accelerator of another kind than CUDA: one that is not known, in
    a program that speaks of such."""
    origins = facts.origins(node)
    on_cuda_or_host = is_cuda(facts, node) or (
        bool(origins) and all(_names(facts, o, "cuda") or _names(facts, o, "cpu") for o in origins)
    )
    return not on_cuda_or_host and facts.once(_speaks_of_others)


def _speaks_of_others(facts: Facts) -> bool:
    return any(
        _is_another(part)
        for module in facts.modules
        if module.source.mentions(_SPEAKING_OF_OTHERS)
        for part in walk(module.tree)
    )


def _is_another(node: Node) -> bool:
    match node:
        case nodes.Attribute(attrname="accelerator" | "mps" | "xpu", expr=owner):
            return owner.as_string() in ("torch", "torch.backends")
        case nodes.ImportFrom(modname="torch", names=names):
            return any(name in ("accelerator", "mps", "xpu") for name, _ in names)
        case nodes.Const(value=str(text)):
            return bool(_OTHERS.match(text))
    return False


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
