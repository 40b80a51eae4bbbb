"""Layer 5, demands: what the conditions around a place ask of parameters, and whether the callers'
constants and defaults allow it.

Where ``load(model, path=None)`` asks ``if isinstance(path, str):``, it reads no file for a caller
that leaves the path out, nor for the callers of one that hands its own ``path=None`` on.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

from astroid import nodes

from ddp_lint.model.calls import CallGraph, Site
from ddp_lint.model.flow import conditions, parts_of
from ddp_lint.model.modules import Unit
from ddp_lint.model.tree import Node, dotted, elements

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "is": operator.is_,
    "is not": operator.is_not,
}


class Demand(NamedTuple):
    """A test of a parameter, and how it has to come out; ``name`` is the parameter."""

    name: str
    test: Node
    holds: bool


Demands = frozenset[Demand]


def demands_of(node: Node, unit: Unit) -> Demands:
    """What the conditions in ``unit`` ask of its parameters for ``node`` to be reached."""
    return frozenset(
        Demand(name, test, holds)
        for condition in conditions(node)
        for test, holds in parts_of(condition.test, condition.holds)
        if (name := _tested(test)) is not None and _is_as_passed(unit, name)
    )


def left_by(graph: CallGraph, site: Site, unit: Unit, demands: Demands) -> Demands | None:
    """What remains to be asked of the caller's own parameters, which it passes on; None where
    what it passes does not lead to the place."""
    if site.handed:
        return frozenset()
    left: set[Demand] = set()
    for demand in demands:
        given = graph.given(site, unit, demand.name)
        truth = _truth(demand.test, given)
        if truth is not None and truth is not demand.holds:
            return None
        if isinstance(given, nodes.Name) and _is_as_passed(site.caller, given.name):
            left.add(demand._replace(name=given.name))
    return frozenset(left)


def _tested(test: Node) -> str | None:
    """The one name that a test asks about."""
    match test:
        case nodes.Name(name=name):
            return str(name)
        case nodes.Compare(left=nodes.Name(name=name), ops=[(op, nodes.Const())]):
            return str(name) if op in _COMPARE else None
        case nodes.Call(func=nodes.Name(name="isinstance"), args=[nodes.Name(name=name), _]):
            return str(name)
    return None


def _is_as_passed(unit: Unit, name: str) -> bool:
    """Whether a name is a parameter that keeps the value it was given."""
    return name in unit.parameters and all(
        binding.path == ("param",) for binding in unit.bindings.get(name, ())
    )


def _truth(test: Node, given: Node | None) -> bool | None:
    """What a test says of what is passed; None where that is no constant."""
    if not isinstance(given, nodes.Const):
        made = isinstance(given, nodes.Call | nodes.Dict | nodes.List | nodes.Tuple)
        match test:
            case nodes.Compare(ops=[("is", nodes.Const(value=None))]) if made:
                return False
            case nodes.Compare(ops=[("is not", nodes.Const(value=None))]) if made:
                return True
        return None
    match test:
        case nodes.Name():
            return bool(given.value)
        case nodes.Compare(ops=[(op, nodes.Const(value=wanted))]):
            return bool(_COMPARE[op](given.value, wanted))
        case nodes.Call(args=[_, kinds]):
            every = elements(kinds) if isinstance(kinds, nodes.Tuple) else [kinds]
            answers = {_is_of(given.value, kind) for kind in every}
            return True if True in answers else None if None in answers else False
    return None


def _is_of(value: object, kind: Node) -> bool | None:
    """Whether a constant is of a type: of one that is not built in, only None certainly is not."""
    name = dotted(kind)
    known = getattr(builtins, name, None)
    if isinstance(known, type):
        return isinstance(value, known)
    return False if value is None and name and not name.endswith("NoneType") else None
