"""Subject: gradients from the backward pass to the optimizer step, in the order of one iteration.

An ``Update`` is a loop that steps an optimizer; its ways, windows and moves are what the rules
about clipping, unscaling, clearing and averaging look at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from astroid import nodes

from ddp_lint.finding import Related
from ddp_lint.model.facts import Facts, Spot, called_name
from ddp_lint.model.flow import Condition
from ddp_lint.model.modules import Unit
from ddp_lint.model.moves import Kind, Moves
from ddp_lint.model.owners import Owners
from ddp_lint.model.steps import Happening
from ddp_lint.model.tree import LOOPS, Node, source, walk_scope
from ddp_lint.model.ways import Event, Walker, Way, body_of
from ddp_lint.model.windows import Certainty, Gate, Gates, takes_other_data


class Training:
    """Every loop of one program that steps an optimizer."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.moves = Moves(facts)
        self.walker = Walker(facts, self.moves)
        self.owners = Owners(facts)
        self.gates = Gates(facts)
        self._own: dict[int, frozenset[Kind]] = {}
        self._outside: dict[int, frozenset[Kind]] = {}

    @cached_property
    def updates(self) -> list[Update]:
        """The innermost loops that hold both a backward pass and an optimizer step."""
        found: list[Update] = []
        for unit in self.facts.units:
            if {"backward", "step"} <= self.moves.kinds(unit):
                found.extend(
                    Update(self, loop, unit) for loop in unit.loops if self._is_update(loop)
                )
        for hook in self.facts.steps.loops:
            if hook.is_hook and {"backward", "step"} <= self._outside_kinds(hook.unit):
                found.append(Update(self, hook.node, hook.unit))
        return [update for update in found if update.ways]

    @cached_property
    def loops(self) -> list[Update]:
        """The loops that step, and those that run backward passes without."""
        known = {id(update.node) for update in self.updates}
        covered = {id(b.node) for update in self.updates for b in update.events("backward")}
        others = [
            Update(self, step.node, step.unit)
            for step in self.facts.steps.loops
            if id(step.node) not in known
            and not all(id(backward.node) in covered for backward in step.backwards)
        ]
        return [*self.updates, *others]

    def _is_update(self, loop: Node) -> bool:
        return {"backward", "step"} <= self._own_kinds(loop)

    def _own_kinds(self, loop: Node) -> frozenset[Kind]:
        """What an iteration does outside of the inner loops that step by themselves."""
        known = self._own.get(id(loop))
        if known is None:
            self._own[id(loop)] = frozenset()
            body = body_of(loop)
            if isinstance(loop, nodes.While):
                body.append(loop.test)
            self._own[id(loop)] = known = self._kinds_in(body)
        return known

    def _outside_kinds(self, unit: Unit) -> frozenset[Kind]:
        """What a unit does outside of its loops that step."""
        known = self._outside.get(id(unit))
        if known is None:
            self._outside[id(unit)] = frozenset()
            self._outside[id(unit)] = known = self._kinds_in(body_of(unit.node))
        return known

    def _kinds_in(self, body: Iterable[Node]) -> frozenset[Kind]:
        found: set[Kind] = set()
        todo = list(body)
        while todo:
            node = todo.pop()
            if isinstance(node, nodes.FunctionDef | nodes.ClassDef | nodes.Lambda):
                continue
            if isinstance(node, LOOPS) and self._is_update(node):
                continue
            found.update(move.kind for move in self.moves.of(node))
            if isinstance(node, nodes.Call):
                entered = [*self.facts.graph.targets_of(node), *self.moves.closures(node)]
                for unit in entered:
                    if self.moves.kinds(unit):
                        found.update(self._outside_kinds(unit))
            todo.extend(node.get_children())
        return frozenset(found)


class Update:
    """A loop whose iterations step an optimizer, or the hook that a framework calls for each."""

    def __init__(self, training: Training, node: Node, unit: Unit) -> None:
        self.training = training
        self.facts = training.facts
        self.node = node
        self.unit = unit

    @property
    def is_hook(self) -> bool:
        return isinstance(self.node, nodes.FunctionDef)

    @cached_property
    def ways(self) -> tuple[Way, ...]:
        return self.training.walker.ways(self.node, self.unit)

    @cached_property
    def happenings(self) -> list[Happening]:
        """Everything that one iteration runs, whichever way it goes."""
        return self.facts.steps.happenings(body_of(self.node), self.unit)

    def events(self, *kinds: Kind) -> list[Event]:
        """The distinct events of these kinds on any way."""
        return list(dict.fromkeys(e for way in self.ways for e in way.of_kind(*kinds)))

    @cached_property
    def steps(self) -> list[Event]:
        return self.events("step")

    # -- windows ----------------------------------------------------------------------------

    @cached_property
    def gated(self) -> dict[Event, list[Gate]]:
        """The steps that wait for the end of a window, with what they wait for."""
        found = {}
        for step in self.steps:
            gates = list(self.training.gates.of(step))
            if gates:
                found[step] = gates
        return found

    @cached_property
    def unfinished(self) -> list[tuple[Way, Gate]]:
        """Ways of an iteration in the middle of a window: a backward and no step, since a gate
        that a step waits for is closed."""
        found = []
        for way in self.ways:
            if way.end == "break" or way.of_kind("step") or not way.of_kind("backward"):
                continue
            for step, gates in self.gated.items():
                closed = self._closed(way, step, gates)
                if closed is not None:
                    found.append((way, closed))
                    break
        return found

    def _closed(self, way: Way, step: Event, gates: list[Gate]) -> Gate | None:
        for condition, _ in step.conditions:
            if way.decides(condition.test) is (not condition.holds):
                for gate in gates:
                    if gate.test is condition.test:
                        return gate
        return None

    @cached_property
    def micro_loops(self) -> dict[Node, Certainty]:
        """Inner loops over micro-batches, whose gradients one step after them takes."""
        stepping = {id(loop) for step in self.steps for loop, _ in step.inner_loops}
        found: dict[Node, Certainty] = {}
        for backward in self.events("backward"):
            for loop, _ in backward.inner_loops:
                if id(loop) not in stepping and loop not in found:
                    data = takes_other_data(self.facts, loop)
                    if data is not None:
                        found[loop] = data
        return found

    def in_micro_loop(self, event: Event) -> Node | None:
        return next((loop for loop, _ in event.inner_loops if loop in self.micro_loops), None)

    @cached_property
    def windows(self) -> list[Window]:
        """The accumulation windows of this loop."""
        found = [Window(self, None, gate, way) for way, gate in self.unfinished]
        for loop, certainty in self.micro_loops.items():
            for way in self.ways:
                inside = any(self.in_micro_loop(b) is loop for b in way.of_kind("backward"))
                if inside and way.of_kind("step"):
                    found.append(Window(self, loop, None, way, certainty))
        return found

    # -- speaking ---------------------------------------------------------------------------

    def related(self, event: Event) -> tuple[Related, ...]:
        """The loop and the calls that lead to an event."""
        says = "this loop trains: each iteration is a step"
        if self.is_hook:
            says = f"`{self.unit.name}` is called for every batch by the framework"
        elif self.steps and all(step.inner_loops for step in self.steps):
            says = "this loop trains: each iteration runs many steps"
        found = [self.facts.related(self.node, says)]
        for call in event.frame.chain:
            found.append(self.facts.related(call, f"`{called_name(call)}` is called here"))
        return tuple(found)


@dataclass(frozen=True, eq=False)
class Window:
    """Several backward passes for one step, seen on one way through the loop.

    Counted by ``gate``, where the way is one of those that do not step; or by the inner
    ``loop``, where the step follows it.
    """

    update: Update
    loop: Node | None
    gate: Gate | None
    way: Way
    certainty: Certainty = "certain"

    def within(self, *kinds: Kind) -> Iterator[Event]:
        """Events of these kinds that each micro-batch runs."""
        gates = self.update.training.gates
        for event in self.way.of_kind(*kinds):
            if self.loop is not None:
                if self.update.in_micro_loop(event) is not self.loop:
                    continue
                inside = [c for c, _ in event.conditions if _is_in(c.test, self.loop)]
            else:
                inside = [c for c, _ in event.conditions]
            inside = [c for c in inside if not self._asks_for_window(c)]
            frames = {id(c): f for c, f in event.conditions}
            if any(gates.gate(c.test, frames[id(c)], event.loop) for c in inside):
                continue
            if any(self._asks_for_length(c.test) for c in inside):
                continue
            yield event

    def _asks_for_window(self, condition: Condition) -> bool:
        """``if accumulate > 1``: whether there is a window, which there is."""
        test, length = condition.test, self.length
        if not isinstance(test, nodes.Compare) or len(test.ops) != 1 or length is None:
            return False
        op, bound = test.ops[0]
        if source(test.left) != source(length) or getattr(bound, "value", None) != 1:
            return False
        return op in ((">", "!=") if condition.holds else ("<=", "=="))

    def _asks_for_length(self, test: Node) -> bool:
        """``if accumulate == 1``, ``if micro_step == 0``: a test of how long the window is, or
        of where in it we are."""
        if isinstance(test, nodes.Compare) and any(
            isinstance(part, nodes.Const) and part.value == 1 for _, part in test.ops
        ):
            return True
        names = self._counting_names
        return any(source(part) in names for part in walk_scope(test) if _is_name(part))

    @cached_property
    def _counting_names(self) -> set[str]:
        found: set[str] = set()
        for root in [self.gate.test if self.gate else None, self.length]:
            if root is not None:
                found.update(source(p) for p in walk_scope(root) if _is_name(p))
        if isinstance(self.loop, nodes.For):
            found.update(
                n.name for n in walk_scope(self.loop.target) if isinstance(n, nodes.AssignName)
            )
        return {name for name in found if name not in ("args", "self", "config", "cfg")}

    @property
    def length(self) -> Node | None:
        """How many micro-batches, as written, where it is."""
        if self.gate is not None:
            return self.gate.length
        call = getattr(self.loop, "iter", None)
        if (
            isinstance(call, nodes.Call)
            and source(call.func) in ("range", "trange")
            and len(call.args) == 1
        ):
            return call.args[0]
        return None

    @property
    def length_text(self) -> str:
        return f"`{source(self.length)}`" if self.length is not None else "several"

    @cached_property
    def steps(self) -> list[Event]:
        """The steps that end it."""
        if self.loop is not None:
            return self.way.of_kind("step")
        return list(self.update.gated)

    @property
    def header(self) -> Node:
        """The loop whose iterations are micro-batches."""
        return self.loop if self.loop is not None else self.update.node


@dataclass(frozen=True)
class UpdateSpot(Spot):
    """Something that an iteration of a loop that steps does, by ``event``."""

    update: Update
    event: Event

    @property
    def name(self) -> str:
        """What is called, as written and without parentheses."""
        return source(getattr(self.node, "func", self.node))

    @property
    def target_text(self) -> str:
        return source(self.event.move.target) if self.event.move.target is not None else ""

    @property
    def chain(self) -> tuple[Related, ...]:
        return self.update.related(self.event)


def _is_name(node: Node) -> bool:
    """A whole chain of names: ``config.train.steps``, and not the ``config.train`` in it."""
    is_chain = isinstance(node, nodes.Attribute | nodes.Name)
    return is_chain and not isinstance(node.parent, nodes.Attribute)


def _is_in(node: Node, loop: Node) -> bool:
    at: Node | None = node
    while at is not None:
        if at is loop:
            return True
        at = at.parent
    return False
