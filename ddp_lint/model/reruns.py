"""Layer 12, reruns: what is run again and again, also by a ``for`` that asks for an iterator.

``for batch in prefetcher`` runs ``prefetcher.__iter__`` without a call in the text.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property

from astroid import nodes

from ddp_lint.model.epochs import turns_once
from ddp_lint.model.facts import Facts
from ddp_lint.model.flow import loops_around
from ddp_lint.model.modules import Class, Unit
from ddp_lint.model.origins import Instance, Origin
from ddp_lint.model.tree import Loop, Node

Loops = list[tuple[Loop, Unit]]
_MOST = 40


class Reruns:
    def __init__(self, facts: Facts) -> None:
        self.facts = facts

    @cached_property
    def _iterated(self) -> dict[int, list[tuple[nodes.For, Unit]]]:
        """The ``for`` loops that run a class's ``__iter__``, by that method."""
        found: dict[int, list[tuple[nodes.For, Unit]]] = defaultdict(list)
        for unit in self.facts.units:
            for loop in unit.loops:
                if not isinstance(loop, nodes.For):
                    continue
                for origin in self._origins(loop.iter):
                    iterate = self._iterate(origin)
                    if iterate is not None:
                        found[id(iterate)].append((loop, unit))
        return found

    def _origins(self, node: Node) -> frozenset[Origin]:
        while isinstance(node, nodes.Call) and node.args and isinstance(node.func, nodes.Name):
            if node.func.name not in ("enumerate", "tqdm", "zip"):
                break
            node = node.args[0]
        return self.facts.origins(node)

    def _iterate(self, origin: Origin) -> Unit | None:
        if not isinstance(origin, Instance):
            return None
        return self.method(origin.cls, "__iter__")

    def method(self, cls: Class, name: str) -> Unit | None:
        for at in self.facts.values.mro(cls):
            if name in at.methods:
                return at.methods[name]
        return None

    def loops_outside(self, node: Node, unit: Unit) -> Loops:
        """The loops that run ``node`` again and again, innermost first."""
        found: Loops = []
        self._outside(node, unit, found, set())
        return found

    def _outside(self, node: Node, unit: Unit, found: Loops, seen: set[int]) -> None:
        for loop in loops_around(node):
            if loop is not node and not turns_once(loop) and all(loop is not k for k, _ in found):
                found.append((loop, unit))
        if id(unit) in seen or len(found) > _MOST:
            return
        seen.add(id(unit))
        for site in self.facts.graph.sites_of(unit):
            if not site.handed:
                self._outside(site.call, site.caller, found, seen)
        for loop, where in self._iterated.get(id(unit), ()):
            self._outside(loop, where, found, seen)

    @cached_property
    def training(self) -> set[int]:
        """Step loops and the loops around them."""
        loops = self.facts.steps.loops
        return {id(loop.node) for loop in loops} | {
            id(node) for loop in loops for node, _ in loop.outer_loops
        }
