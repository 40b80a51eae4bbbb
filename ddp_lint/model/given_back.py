"""Layer 7, given back: where what a call gives is, for the one call that asks.

A helper that hands back what it is handed gives a tensor to one caller and a number to the next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from astroid import nodes

from ddp_lint.model.contents import Where, joined
from ddp_lint.model.flow import reaching
from ddp_lint.model.modules import Unit
from ddp_lint.model.origins import is_none
from ddp_lint.model.passing import argument_for
from ddp_lint.model.tree import Node, elements, walk

if TYPE_CHECKING:
    from ddp_lint.model.tensors import Tensors


class GivenBack:
    """What the functions of one program give to those that call them."""

    def __init__(self, tensors: Tensors) -> None:
        self.tensors = tensors
        self.graph = tensors.graph

    def by(self, unit: Unit, call: nodes.Call) -> Where:
        """What ``unit`` gives to ``call``."""
        return joined([self._of(value, unit, call) for value in unit.returned])

    def part(self, value: Node, path: tuple[int | str, ...]) -> Where:
        """A part of ``value``: of a tuple, also of one that a function of the project returns."""
        index = path[0] if path else None
        if isinstance(value, nodes.Tuple) and isinstance(index, int):
            display = elements(value)
            if not any(isinstance(one, nodes.Starred) for one in display) and index < len(display):
                return self.tensors.where(display[index])
        if isinstance(value, nodes.Call) and isinstance(index, int):
            found = [
                self._of(_at(given, index), unit, value)
                for unit in self.graph.targets_of(value)
                for given in unit.returned
            ]
            if found:
                known = {where for where in found if where is not None}
                return known.pop() if len(known) == 1 else None
        return self.tensors.where(value)

    def hands_back(self, value: Node | None) -> bool:
        """Whether a call may give what it was handed: ``default(number, 1)`` computes nothing."""
        return isinstance(value, nodes.Call) and any(
            isinstance(name, nodes.Name) and _may_be_parameter(name, unit)
            for unit in self.graph.targets_of(value)
            for given in unit.returned
            for name in _alternatives(given)
        )

    def _of(self, value: Node, unit: Unit, call: nodes.Call) -> Where:
        """What ``value``, an expression of ``unit``, is where ``call`` has entered it."""
        where = self.tensors.where
        match value:
            case nodes.IfExp() | nodes.BoolOp():
                return joined([self._of(part, unit, call) for part in _alternatives(value)])
            case nodes.Name() if _may_be_parameter(value, unit):
                bindings = reaching(unit, value.name, value)
                own = [self.tensors.of_binding(b, unit) for b in bindings if b.path != ("param",)]
                given = argument_for(call, unit, value.name)
                return joined(own if self._is_none(given) else [*own, where(given)])
            case nodes.Call(func=nodes.Name(name=name)) if _is_parameter(unit, name):
                made = argument_for(call, unit, name)
                return where(made.body if isinstance(made, nodes.Lambda) else None)
        found = where(value)
        if found is None or found == "host":
            return found
        handed = [where(argument_for(call, unit, name)) for name in sorted(_made_of(value, unit))]
        return None if handed and all(one == "host" for one in handed) else found

    def _is_none(self, node: Node | None) -> bool:
        """Whether this is None for all that is known: a default that nobody replaces."""
        origins = self.graph.origins(node)
        return bool(origins) and all(map(is_none, origins))


def _at(value: Node, index: int) -> Node:
    """The element of a tuple as it is written; all of it, where it is no tuple."""
    display = elements(value) if isinstance(value, nodes.Tuple) else []
    return display[index] if -len(display) <= index < len(display) else value


def _alternatives(value: Node) -> list[Node]:
    """What an expression may come to: either side of ``given or default``."""
    match value:
        case nodes.IfExp():
            return [*_alternatives(value.body), *_alternatives(value.orelse)]
        case nodes.BoolOp():
            return [part for one in value.values for part in _alternatives(one)]
    return [value]


def _may_be_parameter(name: nodes.Name, unit: Unit) -> bool:
    return any(b.path == ("param",) for b in reaching(unit, name.name, name))


def _is_parameter(unit: Unit, name: str) -> bool:
    return [b.path for b in unit.bindings.get(name, ())] == [("param",)]


def _made_of(value: Node, unit: Unit) -> set[str]:
    """The parameters of ``unit`` that occur in an expression."""
    return {
        part.name
        for part in walk(value)
        if isinstance(part, nodes.Name)
        and part.name != unit.self_name
        and _is_parameter(unit, part.name)
    }
