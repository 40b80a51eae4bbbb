"""Subject: values that are kept from step to step together with their autograd graph."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal
from weakref import WeakKeyDictionary

from astroid import nodes

from ddp_lint.finding import Edit, Fix, Level, Related
from ddp_lint.model.evaluation import Evaluations
from ddp_lint.model.facts import Facts, Spot
from ddp_lint.model.frames import Frame, resolve
from ddp_lint.model.grad_mode import GradMode
from ddp_lint.model.gradients import Update
from ddp_lint.model.histories import Graph, Histories
from ddp_lint.model.modules import Binding, Unit
from ddp_lint.model.once import in_named_iterations
from ddp_lint.model.tree import Node, dotted, is_within, position, source, walk, walk_scope
from ddp_lint.model.ways import body_of

_EMPTYING = frozenset({"clear", "pop", "popleft", "popitem", "reset", "reset_meters", "backward"})
_MOST_CALLS = 4


@dataclass(frozen=True)
class Kept(Spot):
    """Where a value with a graph is handed to something that outlives the step."""

    value: Node
    holder: Node
    graph: Graph
    loop: Node
    store: Node

    @property
    def value_text(self) -> str:
        return source(self.value)

    @property
    def holder_text(self) -> str:
        return source(self.holder)

    @property
    def stays(self) -> Literal["nodes", "activations"]:
        """What the holder keeps of each step."""
        return "nodes" if self.graph == "freed" else "activations"

    @property
    def level(self) -> Level:
        return "note" if self.graph == "freed" else "error"

    @property
    def chain(self) -> tuple[Related, ...]:
        found = [self.facts.related(self.loop, "each iteration adds its graph")]
        if self.store is not self.node:
            found.append(self.facts.related(self.store, "it is kept here"))
        return tuple(found)

    @property
    def fix(self) -> Fix | None:
        """Inserted behind the value, so that it stays written as it is."""
        is_primary = isinstance(
            self.value, nodes.Name | nodes.Attribute | nodes.Call | nodes.Subscript
        )
        file = self.facts.values.module_of(self.value).source
        line, column = self.value.end_lineno or 0, self.value.end_col_offset or 0
        if not line:
            return None
        end = file.place(line, column, line, column)
        if is_primary:
            edits: tuple[Edit, ...] = (Edit(end, ".detach()"),)
        else:
            start = position(self.value)
            edits = (Edit(file.place(*start, *start), "("), Edit(end, ").detach()"))
        return Fix("Add `.detach()`", edits, safe=True)


@dataclass(frozen=True)
class _Store:
    """A statement that adds ``value`` to ``holder``."""

    node: Node
    holder: Node
    value: Node


def kept_graphs(evaluations: Evaluations) -> Iterator[Kept]:
    """Graphs that outlive the step that made them."""
    training = evaluations.training
    keeping = _Keeping(training.facts)
    seen: set[Node] = set()
    # A loop that only runs backward passes is a window: what it collects lasts until the step.
    loops = [update for update in training.updates if not update.is_hook]
    loops += [Update(training, found.node, found.unit) for found in evaluations.recording]
    for loop in loops:
        for kept in _Iteration(loop, evaluations.mode, keeping).kept():
            if kept.node not in seen:
                seen.add(kept.node)
                yield kept


class _Iteration:
    """One iteration of a loop, for the question what of it is kept."""

    def __init__(self, update: Update, mode: GradMode, keeping: _Keeping) -> None:
        self.update = update
        self.facts = update.facts
        self.mode = mode
        self.keeping = keeping
        self.loop = update.node
        self.unit = update.unit
        self.histories = Histories(self.facts, mode, self.loop)

    def kept(self) -> Iterator[Kept]:
        frame = Frame(self.unit)
        for statement in body_of(self.loop):
            yield from self._walk(statement, frame)

    def _walk(self, body: Node, frame: Frame) -> Iterator[Kept]:
        for node in walk_scope(body):
            for store in _stores(node):
                yield from self._judge(store, frame)
            if isinstance(node, nodes.Call) and len(frame.chain) < _MOST_CALLS:
                for unit in self.facts.graph.targets_of(node):
                    if frame.enters(unit) or not self.keeping.in_unit(unit):
                        continue
                    if not self.update.training.walker.may_run(unit):
                        continue
                    inner = Frame(unit, "", node, frame)
                    for statement in body_of(unit.node):
                        yield from self._walk(statement, inner)

    def _judge(self, store: _Store, frame: Frame) -> Iterator[Kept]:
        graph = self.histories.graph(store.value, frame)
        if graph is None or not self._outlives(store, frame):
            return
        top = frame.chain[0] if frame.chain else store.node
        if in_named_iterations(top, self.unit, self.loop):
            return  # a handful of graphs, however long the loop is
        if self.mode.on_way(store.value, frame) != "on":
            return
        node, value = self._handed_over(store, frame)
        yield Kept(self.facts, node, value, store.holder, graph, self.loop, store.node)

    def _handed_over(self, store: _Store, frame: Frame) -> tuple[Node, Node]:
        """The call that hands the graph to a meter, and what it hands over; the statement itself
        where the value is made beside it."""
        for part in walk(store.value):
            if not isinstance(part, nodes.Name):
                continue
            for given, at in self.histories.passed(part, frame):
                if self.histories.graph(given, at) is not None and frame.call is not None:
                    inner = frame
                    while inner.caller is not None and inner.caller is not at:
                        inner = inner.caller
                    if inner.call is not None:
                        return inner.call, given
        return store.node, store.value

    # -- holders ----------------------------------------------------------------------------

    def _outlives(self, store: _Store, frame: Frame) -> bool:
        base = store.holder
        while isinstance(base, nodes.Subscript | nodes.Attribute | nodes.AssignAttr):
            if isinstance(base, nodes.Attribute | nodes.AssignAttr):
                if base.attrname in ("data", "grad"):
                    return False
                if isinstance(base.expr, nodes.Name):
                    return self._attribute_outlives(base, store, frame)
            base = base.value if isinstance(base, nodes.Subscript) else base.expr
        if isinstance(base, nodes.Call):
            return self._is_kept_by_object(base)
        if not isinstance(base, nodes.Name | nodes.AssignName):
            return False
        written = resolve(base, frame) if isinstance(base, nodes.Name) else None
        name, at = base.name, frame
        if written is not None:
            if isinstance(written.node, nodes.Attribute):
                return self._attribute_outlives(written.node, store, written.frame)
            if not isinstance(written.node, nodes.Name):
                return False
            name, at = written.node.name, written.frame
        return self._name_outlives(name, store, at)

    def _is_kept_by_object(self, call: nodes.Call) -> bool:
        """``stats.get("loss")``: what an object of the project keeps in an attribute."""
        entered = self.facts.graph.targets_of(call)
        for unit in entered:
            for statement in unit.returns:
                value = statement.value if isinstance(statement, nodes.Return) else statement
                base = source(value).partition("[")[0] if value is not None else ""
                if base.partition(".")[0] != unit.self_name or base.count(".") != 1:
                    return False
        return bool(entered)

    def _name_outlives(self, name: str, store: _Store, frame: Frame) -> bool:
        if frame.caller is not None:
            return name in frame.unit.globals
        unit = self._home(name)
        if unit is None:
            return False
        bindings = unit.bindings.get(name, [])
        outside = [b for b in bindings if not is_within(b.node, self.loop)]
        inside = [b for b in bindings if is_within(b.node, self.loop)]
        if not outside or any(b.path == ("import",) for b in outside):
            return False
        if any(not is_within(b.node, store.node) and not _adds(b) for b in inside):
            return False  # starts anew within the loop
        if name in self._emptied or self._is_bounded(outside):
            return False
        return name not in self.facts.tensors.feeding_backward(unit)

    def _home(self, name: str) -> Unit | None:
        at: Unit | None = self.unit
        while at is not None:
            if name in at.bindings and name not in at.globals:
                return at
            at = at.outer
        return None

    def _attribute_outlives(
        self, holder: nodes.Attribute | nodes.AssignAttr, store: _Store, frame: Frame
    ) -> bool:
        if isinstance(holder.expr, nodes.Name) and frame.caller is None:
            bindings = frame.unit.bindings.get(holder.expr.name, [])
            inside = [b for b in bindings if is_within(b.node, self.loop)]
            if inside and not all(is_within(b.node, store.node) for b in inside):
                return False
        again = [
            node for node in self._assigned.get(holder.attrname, ()) if node is not store.node
        ]
        return holder.attrname not in self._emptied and not again

    @cached_property
    def _emptied(self) -> frozenset[str]:
        """What is emptied in an iteration: ``losses.clear()``, ``del losses[:]``,
        ``losses.pop(0)``, ``meter.reset()``; by the last part of its name."""
        found: set[str] = set()
        for happening in self.update.happenings:
            node = happening.node
            if isinstance(node, nodes.Call) and isinstance(node.func, nodes.Attribute):
                if node.func.attrname in _EMPTYING:
                    found.add(dotted(node.func.expr).rpartition(".")[2])
            elif isinstance(node, nodes.Delete):
                found.update(
                    source(target).partition("[")[0].rpartition(".")[2] for target in node.targets
                )
        return frozenset(found)

    @cached_property
    def _assigned(self) -> dict[str, list[Node]]:
        """Attributes that start anew in an iteration, at a window's end perhaps."""
        found: dict[str, list[Node]] = {}
        for happening in self.update.happenings:
            node = happening.node
            if not isinstance(node, nodes.Assign):
                continue
            for target in node.targets:
                name = getattr(target, "attrname", "")
                if name and all(getattr(p, "attrname", "") != name for p in walk(node.value)):
                    found.setdefault(name, []).append(node)
        return found

    def _is_bounded(self, bindings: list[Binding]) -> bool:
        """``deque(maxlen=20)``: a handful of graphs at most."""
        return any(
            isinstance(b.value, nodes.Call)
            and dotted(b.value.func).rpartition(".")[2] == "deque"
            and (len(b.value.args) > 1 or any(k.arg == "maxlen" for k in b.value.keywords))
            for b in bindings
        )


def _adds(binding: Binding) -> bool:
    """A binding that goes on from what the name held before."""
    if binding.path == ("aug",):
        return True
    return binding.value is not None and any(
        isinstance(part, nodes.Name) and part.name == binding.name for part in walk(binding.value)
    )


# -- statements that add to something ---------------------------------------------------------


def _stores(node: Node) -> Iterator[_Store]:
    match node:
        case nodes.AugAssign(op="+=" | "-=", target=target, value=value):
            yield _Store(node, target, value)
        case nodes.Assign(targets=[target], value=nodes.BinOp() as value):
            for part in _added(value, source(target)):
                yield _Store(node, target, part)
        case nodes.Call(
            func=nodes.Attribute(attrname="append" | "add_", expr=holder), args=[value, *_]
        ):
            if not isinstance(value, nodes.Tuple | nodes.List | nodes.Dict):
                yield _Store(node, holder, value)


def _added(value: Node, target: str) -> Iterator[Node]:
    """The terms that are added to what ``target`` held, in a sum that contains it."""
    terms = list(_terms(value))
    own = [t for t in terms if any(source(part) == target for part in walk(t))]
    if own and len(own) < len(terms):
        yield from (t for t in terms if t not in own)


def _terms(node: Node) -> Iterator[Node]:
    if isinstance(node, nodes.BinOp) and node.op in ("+", "-"):
        yield from _terms(node.left)
        yield from _terms(node.right)
    else:
        yield node


#: Whether a unit itself adds to something, for all the programs that it is part of.
_ADDING: WeakKeyDictionary[Unit, bool] = WeakKeyDictionary()


class _Keeping:
    """Which units of one program may add to something that outlives them."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self._known: dict[int, bool] = {}

    def in_unit(self, unit: Unit, depth: int = 0) -> bool:
        known = self._known.get(id(unit))
        if known is None:
            self._known[id(unit)] = False
            known = self._adds(unit) or (
                depth < _MOST_CALLS
                and any(
                    self.in_unit(target, depth + 1)
                    for call in unit.calls
                    for target in self.facts.graph.targets_of(call)
                )
            )
            self._known[id(unit)] = known
        return known

    def _adds(self, unit: Unit) -> bool:
        known = _ADDING.get(unit)
        if known is None:
            known = _ADDING[unit] = any(
                True
                for statement in body_of(unit.node)
                for node in walk_scope(statement)
                for _ in _stores(node)
            )
        return known


__all__ = ["Kept", "kept_graphs"]
