"""Layer 9, entering: what holds in a unit where one particular call enters it."""

from __future__ import annotations

from astroid import nodes

from ddp_lint.model.arguments import Context
from ddp_lint.model.facts import Facts
from ddp_lint.model.flow import conditions
from ddp_lint.model.modules import Unit
from ddp_lint.model.origins import Expression
from ddp_lint.model.passing import argument_for
from ddp_lint.model.tree import Node, walk


def is_left_out(facts: Facts, node: Node, context: Context) -> bool:
    """Whether the calls of ``context`` switch off the branch in which ``node`` stands."""
    unit = facts.values.unit_of(node)
    return any(
        holds(facts, condition.test, unit, call) is (not condition.holds)
        for entered, call in context
        if entered is unit
        for condition in conditions(node)
    )


def may_be_left_out(facts: Facts, node: Node, context: Context) -> bool:
    """Whether the branch of ``node`` hangs on a parameter that the calls may pass or not."""
    unit = facts.values.unit_of(node)
    return any(
        isinstance(part, nodes.Name)
        and part.name in unit.parameters
        and argument_for(call, unit, part.name) is None
        for entered, call in context
        if entered is unit
        for condition in conditions(node)
        for part in walk(condition.test)
    )


def holds(facts: Facts, test: Node, unit: Unit, call: nodes.Call) -> bool | None:
    """What a test of parameters is where ``call`` enters the unit; None for others."""
    match test:
        case nodes.Name(name=name) if name in unit.parameters:
            value = _constant(facts, name, unit, call)
            return bool(value.value) if value is not None else None
        case nodes.UnaryOp(op="not", operand=operand):
            inner = holds(facts, operand, unit, call)
            return None if inner is None else not inner
        case nodes.BoolOp(op=op, values=values):
            answers = [holds(facts, value, unit, call) for value in values]
            if (op == "or") in answers:
                return op == "or"
            return None if None in answers else op == "and"
        case nodes.Compare(left=nodes.Name(name=name), ops=[(op, nodes.Const(value=wanted))]):
            value = _constant(facts, name, unit, call) if name in unit.parameters else None
            if value is None or op not in ("==", "is", "!=", "is not"):
                return None
            return (value.value == wanted) is (op in ("==", "is"))
    return None


def _constant(facts: Facts, name: str, unit: Unit, call: nodes.Call) -> nodes.Const | None:
    given = argument_for(call, unit, name)
    origins = facts.origins(given) if given is not None else frozenset()
    if len(origins) != 1:
        return None
    (origin,) = origins
    if isinstance(origin, Expression) and isinstance(origin.node, nodes.Const):
        return origin.node
    return None
