"""Layer 9, constants: parameters and attributes that have one value, whoever calls."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

from astroid import nodes

from ddp_lint.model.counters import bound
from ddp_lint.model.facts import Facts
from ddp_lint.model.flow import reaching
from ddp_lint.model.modules import Binding, Unit
from ddp_lint.model.origins import Expression, Instance, Item, Made, Result
from ddp_lint.model.passing import argument_for
from ddp_lint.model.tree import Node, elements

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "is": operator.eq,
    "!=": operator.ne,
    "is not": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def truth(facts: Facts, test: Node, unit: Unit, call: nodes.Call | None) -> bool | None:
    """What a test comes to where ``call`` enters the unit; None where it cannot be told."""
    match test:
        case nodes.Const():
            return bool(test.value)
        case nodes.Name() | nodes.Attribute():
            value = constant(facts, test, unit, call)
            return None if value is None else bool(value.value)
        case nodes.UnaryOp(op="not", operand=operand):
            inner = truth(facts, operand, unit, call)
            return None if inner is None else not inner
        case nodes.BoolOp(op=op, values=values):
            answers = [truth(facts, value, unit, call) for value in values]
            if (op == "or") in answers:
                return op == "or"
            return None if None in answers else op == "and"
        case nodes.Compare(left=left, ops=[(op, nodes.Const(value=wanted))]) if op in _COMPARE:
            value = constant(facts, left, unit, call)
            if value is None:
                return _as_given(facts, left, op, wanted, unit, call)
            try:
                return bool(_COMPARE[op](value.value, wanted))
            except TypeError:
                return None
    return None


def constant(facts: Facts, node: Node, unit: Unit, call: nodes.Call | None) -> nodes.Const | None:
    """A constant itself, or the one value that a parameter of ``unit`` has where ``call`` enters
    it, or that an attribute has in every object of its class."""
    if isinstance(node, nodes.Const):
        return node
    if isinstance(node, nodes.Name) and call is not None and _is_as_passed(unit, node):
        return _one(facts, argument_for(call, unit, node.name))
    if isinstance(node, nodes.Attribute):
        return _kept(facts, node)
    return None


def alternatives(facts: Facts, node: Node) -> Iterator[nodes.Const]:
    """The constants that a value is on some of the ways that it comes about."""
    for origin in facts.origins(node):
        match origin:
            case Expression(node=nodes.Const() as value):
                yield value
            case Result(of=Instance(), call=call):
                yield from _of_module(facts, call, None)
            case Item(of=Result(of=Instance(), call=call), how=int(index)):
                yield from _of_module(facts, call, index)


def _of_module(facts: Facts, call: nodes.Call, index: int | None) -> Iterator[nodes.Const]:
    """What an object that is called gives back, or one part of the tuple."""
    for unit in facts.graph.targets_of(call):
        for value in unit.returned:
            given: Node | None = value
            if index is not None:
                display = elements(value) if isinstance(value, nodes.Tuple) else []
                given = display[index] if -len(display) <= index < len(display) else None
            for origin in facts.origins(given):
                if isinstance(origin, Expression) and isinstance(origin.node, nodes.Const):
                    yield origin.node


def _as_given(
    facts: Facts, node: Node, op: str, wanted: object, unit: Unit, call: nodes.Call | None
) -> bool | None:
    """What ``length > 0`` and ``length is None`` come to where ``call`` passes a length for a
    parameter that is 0 or None otherwise: who passes one has one."""
    if not isinstance(node, nodes.Name) or not _is_as_passed(unit, node):
        return None
    if wanted is None and op in ("is", "is not") and _is_object(facts, node, unit, call):
        return op == "is not"
    if call is None:
        return None
    default = unit.default_of(node.name)
    given = argument_for(call, unit, node.name)
    if given is None or given is default or isinstance(given, nodes.Const):
        return None
    if not isinstance(default, nodes.Const) or (default.value, wanted) not in (
        (0, 0),
        (None, None),
    ):
        return None
    return {">": True, "!=": True, "is not": True, "==": False, "is": False, "<=": False}.get(op)


def _is_object(facts: Facts, name: nodes.Name, unit: Unit, call: nodes.Call | None) -> bool:
    """Whether a parameter is what a class was called for: where ``call`` enters the unit, or for
    whoever calls it where that is not known."""
    if call is not None:
        return _is_constructed(facts, argument_for(call, unit, name.name))
    sites = facts.graph.sites_of(unit)
    return bool(sites) and all(
        not site.handed and _is_constructed(facts, facts.graph.given(site, unit, name.name))
        for site in sites
    )


def _is_constructed(facts: Facts, node: Node | None) -> bool:
    origins = facts.origins(node)
    return bool(origins) and all(
        isinstance(origin, Instance)
        or (isinstance(origin, Made) and origin.name.rpartition(".")[2][:1].isupper())
        for origin in origins
    )


def _is_as_passed(unit: Unit, name: nodes.Name) -> bool:
    """Whether a name still is the parameter here."""
    reached = reaching(unit, name.name, name) if name.name in unit.bindings else []
    return [binding.path for binding in reached] == [("param",)]


def _one(facts: Facts, given: Node | None) -> nodes.Const | None:
    if isinstance(given, nodes.Const):
        return given
    origins = facts.origins(given) if given is not None else frozenset()
    if len(origins) != 1:
        return None
    (origin,) = origins
    return _const_of(origin.node) if isinstance(origin, Expression) else None


def _const_of(node: Node | None) -> nodes.Const | None:
    return node if isinstance(node, nodes.Const) else None


def _kept(facts: Facts, node: nodes.Attribute) -> nodes.Const | None:
    if not all(isinstance(o, Instance) for o in facts.origins(node.expr)) or any(
        _may_be_set_from_outside(facts, node)
    ):
        return None
    found = [
        value for binding, unit in bound(facts, node) for value in _values(facts, binding, unit)
    ]
    first = found[0] if found else None
    if first is None or any(one is None or one.value != first.value for one in found):
        return None
    return first


def _values(facts: Facts, binding: Binding, unit: Unit) -> Iterator[nodes.Const | None]:
    """What the methods of a class put into an attribute, and what their callers make of it."""
    value = binding.value
    if binding.path or not isinstance(binding.node, nodes.AssignAttr):
        yield None
    elif isinstance(value, nodes.Name) and value.name in unit.parameters:
        sites = facts.graph.sites_of(unit)
        if not sites:
            yield None
        for site in sites:
            yield None if site.handed else constant(facts, value, unit, site.call)
    else:
        yield _const_of(value)


def _may_be_set_from_outside(facts: Facts, node: nodes.Attribute) -> Iterator[bool]:
    """Whether code that has such an object, as far as one can tell, gives it another value."""
    for module in facts.modules:
        for _, owner, _ in module.attribute_stores.get(node.attrname, ()):
            origins = facts.origins(owner)
            yield not origins or not all(isinstance(o, Instance) for o in origins)
