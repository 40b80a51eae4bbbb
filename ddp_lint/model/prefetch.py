"""Layer 13, prefetch: generators and iterators around a loader that lose some of its batches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from astroid import nodes

from ddp_lint.finding import Related
from ddp_lint.model.drawing import Drawing
from ddp_lint.model.facts import Facts, Spot
from ddp_lint.model.flow import conditions, loops_around
from ddp_lint.model.modules import Binding, Unit
from ddp_lint.model.origins import Instance
from ddp_lint.model.reruns import Reruns
from ddp_lint.model.tree import (
    Node,
    ancestors,
    dotted,
    is_within,
    position,
    source,
    walk,
    walk_scope,
)

_ITER = frozenset({"builtins.iter"})

Kind = Literal["kept back", "ends in an error", "used up", "unbound"]


@dataclass(frozen=True)
class LostBatch(Spot):
    """A place at which a batch, or all of them, do not arrive."""

    kind: Kind
    name: str
    because: Node

    @property
    def related(self) -> tuple[Related, ...]:
        says = {
            "kept back": "only here it is handed over",
            "ends in an error": "this goes on when the loader has ended",
            "used up": "this goes through it again in each epoch",
            "unbound": "only this loop binds it",
        }[self.kind]
        return (self.facts.related(self.because, says),)


class Losses:
    def __init__(self, facts: Facts, drawing: Drawing, reruns: Reruns) -> None:
        self.facts = facts
        self.drawing = drawing
        self.reruns = reruns

    def __iter__(self) -> Iterator[LostBatch]:
        for unit in self.facts.units:
            if unit.is_generator:
                for loop in unit.loops:
                    if isinstance(loop, nodes.For) and self._goes_through_loader(loop):
                        yield from self._kept_back(loop, unit)
                        yield from self._unbound(loop, unit)
                yield from self._ends_in_error(unit)
        yield from self._used_up()

    def _goes_through_loader(self, loop: nodes.For) -> bool:
        """A loop over a loader, or one that moves what it finds to the device."""
        if self.drawing.draws(loop.iter, loop):
            return True
        return any(
            isinstance(part, nodes.Call) and getattr(part.func, "attrname", "") in ("cuda", "to")
            for one in loop.body
            for part in walk(one)
        )

    # -- one batch is kept back -------------------------------------------------------------

    def _kept_back(self, loop: nodes.For, unit: Unit) -> Iterator[LostBatch]:
        inside = [n for n in _yields(unit) if any(is_within(n, one) for one in loop.body)]
        behind = [n for n in _yields(unit) if position(n) > position(loop) and n not in inside]
        if len(inside) != 1:
            return
        given = inside[0]
        if not isinstance(given.value, nodes.Name):
            return
        name = given.value.name
        if not any(c for c in conditions(given) if is_within(c.test, loop)):
            return
        bound = [b for b in unit.bindings.get(name, ()) if is_within(b.node, loop)]
        if not bound or any(b.at < position(given) for b in bound):
            return
        if not any(self._is_of_this_turn(b, loop, unit, 0) for b in bound):
            return
        if not any(name in _names(n) for n in behind):
            yield LostBatch(self.facts, loop, "kept back", name, given)

    def _is_of_this_turn(self, binding: Binding, loop: nodes.For, unit: Unit, depth: int) -> bool:
        """Whether a name is given something made from this iteration's batch."""
        if binding.value is None or depth > 3:
            return False
        targets = {n.name for n in walk(loop.target) if isinstance(n, nodes.AssignName)}
        used = _names(binding.value)
        return bool(used & targets) or any(
            self._is_of_this_turn(b, loop, unit, depth + 1)
            for name in used
            for b in unit.bindings.get(name, ())
            if is_within(b.node, loop) and b.at < binding.at
        )

    # -- a name that only the loop binds ----------------------------------------------------

    def _unbound(self, loop: nodes.For, unit: Unit) -> Iterator[LostBatch]:
        for given in _yields(unit):
            if is_within(given, loop) or position(given) < position(loop):
                continue
            if not isinstance(given.value, nodes.Name) or conditions(given):
                continue
            name = given.value.name
            bindings = unit.bindings.get(name, [])
            if bindings and all(is_within(b.node, loop) for b in bindings):
                yield LostBatch(self.facts, given, "unbound", name, loop)

    # -- next() in a generator --------------------------------------------------------------

    def _ends_in_error(self, unit: Unit) -> Iterator[LostBatch]:
        for call in unit.calls:
            if dotted(call.func) != "next" or len(call.args) != 1:
                continue
            endless = next((n for n in loops_around(call) if isinstance(n, nodes.While)), None)
            if endless is None or not _is_endless(endless) or _is_caught(call):
                continue
            if self._is_finite(call.args[0]):
                yield LostBatch(
                    self.facts, call, "ends in an error", source(call.args[0]), endless
                )

    def _is_finite(self, iterator: Node) -> bool:
        """An iterator over a loader with an end."""
        behind = [one.node for one in self.drawing.behind(iterator)] if _is_name(iterator) else []
        if not behind:
            behind = [iterator]
        for one in behind:
            if "cycle" in one.as_string() or not isinstance(one, nodes.Call):
                return False
            if dotted(one.func) != "iter" or not one.args:
                return False
            draws = self.drawing.draws(one.args[0], one)
            if not draws or any(d.at is not one for d in draws):
                return False
            if not all(self._has_end(d.source.loader.sampler_nodes) for d in draws):
                return False
        return True

    def _has_end(self, samplers: list[Node]) -> bool:
        return not any(isinstance(o, Instance) for n in samplers for o in self.facts.origins(n))

    # -- one iterator for all epochs --------------------------------------------------------

    def _used_up(self) -> Iterator[LostBatch]:
        seen: set[int] = set()
        if not any(self.drawing.draws(call, call) for call, _ in self.facts.calls_to(_ITER)):
            return
        for unit in self.facts.units:
            for loop in unit.loops:
                if not isinstance(loop, nodes.For) or _takes_a_part(loop):
                    continue
                for draw in self.drawing.draws(loop.iter, loop):
                    made = draw.at
                    if made is loop or id(made) in seen or not _is_iter(self.facts, made):
                        continue
                    if self._runs_again(loop, unit, made) and not self._is_made_anew(made):
                        seen.add(id(made))
                        yield LostBatch(self.facts, made, "used up", source(made), loop)

    def _runs_again(self, loop: Node, unit: Unit, made: Node) -> bool:
        """Whether some loop goes through the iterator again without making another."""
        home = self.facts.values.unit_of(made)
        around = {id(node) for node, _ in self.reruns.loops_outside(made, home)}
        return any(
            id(node) not in around and not is_within(made, node)
            for node, _ in self.reruns.loops_outside(loop, unit)
        )

    def _is_made_anew(self, made: Node) -> bool:
        """Whether the name is given another iterator somewhere."""
        at = made.parent
        if not isinstance(at, nodes.Assign):
            return True
        target, home = dotted(at.targets[0]), self.facts.values.unit_of(made)
        for part in walk(home.module.tree):
            if isinstance(part, nodes.Assign) and part is not at:
                unit = self.facts.values.unit_of(part)
                same = unit.owner is home.owner if "." in target else unit is home
                if same and any(dotted(one) == target for one in part.targets):
                    return True
        return False


def _yields(unit: Unit) -> list[nodes.Yield]:
    return [n for n in unit.yields if isinstance(n, nodes.Yield) and n.value is not None]


def _names(node: Node) -> set[str]:
    return {part.name for part in walk(node) if isinstance(part, nodes.Name)}


def _is_name(node: Node) -> bool:
    return isinstance(node, nodes.Name | nodes.Attribute)


def _is_iter(facts: Facts, node: Node) -> bool:
    return isinstance(node, nodes.Call) and bool(facts.names(node) & _ITER)


def _is_endless(loop: nodes.While) -> bool:
    return isinstance(loop.test, nodes.Const) and bool(loop.test.value)


def _is_caught(call: Node) -> bool:
    """Whether a ``try`` around it catches the end of the iterator."""
    for child, parent in ancestors(call):
        if isinstance(parent, nodes.ExceptHandler):
            return True
        if isinstance(parent, nodes.Try) and any(child is one for one in parent.body):
            for handler in parent.handlers:
                if handler.type is None:
                    return True
                if any(w in handler.type.as_string() for w in ("StopIteration", "Exception")):
                    return True
    return False


def _takes_a_part(loop: nodes.For) -> bool:
    """A loop that leaves the iterator before its end, and may come back for the rest."""
    text = loop.iter.as_string()
    if "islice" in text or "zip(" in text or "range(" in text:
        return True
    return any(
        isinstance(node, nodes.Break | nodes.Return)
        for one in loop.body
        for node in walk_scope(one)
    )
