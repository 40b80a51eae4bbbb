"""Layer 2, passing: which expression a call passes for a parameter of what it enters."""

from __future__ import annotations

from astroid import nodes

from ddp_lint.model.modules import Unit
from ddp_lint.model.tree import Node


def argument_for(call: nodes.Call, unit: Unit, name: str) -> Node | None:
    """The expression that ``call`` passes for a parameter of ``unit``, or its default.

    None where it cannot be told (``*args``, ``**kwargs``) or nothing is passed.
    """
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    positional = unit.positional_parameters
    if unit.is_method and positional and not _explicit_self(call, unit):
        positional = positional[1:]
    elif unit.name == "forward" and getattr(call.func, "attrname", "") == "apply":
        positional = positional[1:]  # autograd hands ``ctx`` to a function of its own
    if name in positional:
        index = positional.index(name)
        before = call.args[: index + 1]
        if any(isinstance(a, nodes.Starred) for a in before):
            return None
        if index < len(call.args):
            return call.args[index]
    if any(keyword.arg is None for keyword in call.keywords):
        return None
    return unit.default_of(name)


def _explicit_self(call: nodes.Call, unit: Unit) -> bool:
    """``Base.method(self, x)``: the object is passed as an argument."""
    return (
        isinstance(call.func, nodes.Attribute)
        and isinstance(call.func.expr, nodes.Name)
        and unit.owner is not None
        and call.func.expr.name == unit.owner.name
        and unit.name != "__init__"
    ) or (
        unit.owner is not None
        and unit.name == "__init__"
        and isinstance(call.func, nodes.Attribute)
        and call.func.attrname == "__init__"
        and isinstance(call.func.expr, nodes.Name | nodes.Attribute)
        and not (isinstance(call.func.expr, nodes.Name) and call.func.expr.name == "self")
        and bool(call.args)
        and isinstance(call.args[0], nodes.Name)
        and call.args[0].name == "self"
    )
