"""Subject, part 4: accumulation windows: several backward passes for one optimizer step.

A window is counted by a gate around the step (``if (i + 1) % n == 0``), or it is a loop of its
own inside of the loop that steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from astroid import nodes

from ddp_lint.model.facts import Facts
from ddp_lint.model.flow import reaching
from ddp_lint.model.frames import Frame, key, resolve
from ddp_lint.model.modules import Binding
from ddp_lint.model.origins import Expression
from ddp_lint.model.tree import Node, dotted, is_within, source, walk, walk_scope
from ddp_lint.model.ways import Event

_ANSWERS = frozenset(
    {"sync_gradients", "is_gradient_accumulation_boundary", "is_accumulation_boundary"}
)
_GETTERS = frozenset(
    {"next", "get_batch", "next_batch", "get_next_batch", "sample_batch", "__next__"}
)
_DEEPEST = 5

Certainty = Literal["certain", "likely"]


@dataclass(frozen=True)
class Gate:
    """A test that lets one of several iterations through; ``length`` says one of how many."""

    test: Node
    frame: Frame
    length: Node | None

    @property
    def length_text(self) -> str:
        return source(self.length) if self.length is not None else ""


class Gates:
    """Recognises the gates of windows in one program."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts

    def of(self, event: Event) -> Iterator[Gate]:
        """The gates that ``event`` waits for."""
        for condition, frame in event.conditions:
            gate = self.gate(condition.test, frame, event.loop)
            if gate is not None:
                yield gate

    def gate(self, test: Node, frame: Frame, loop: Node) -> Gate | None:
        found = self._search(test, frame, loop, 0)
        return Gate(test, frame, found[0]) if found is not None else None

    def _search(
        self, test: Node, frame: Frame, loop: Node, depth: int
    ) -> tuple[Node | None] | None:
        """A tuple with the length where there is a gate, None where there is none."""
        if depth > _DEEPEST:
            return None
        for node in walk(test):
            found: tuple[Node | None] | None = None
            if isinstance(node, nodes.BinOp) and node.op == "%":
                if self._counts_iterations(node, frame, loop):
                    return None if _is_one(resolve(node.right, frame).node) else (node.right,)
            elif isinstance(node, nodes.Compare):
                found = self._counted(node, frame, loop)
            elif isinstance(node, nodes.Name) and not _is_callee(node):
                found = self._named(node, frame, loop, depth)
            elif isinstance(node, nodes.Attribute):
                found = self._attribute(node, frame, loop, depth)
            elif isinstance(node, nodes.Call):
                found = self._answered(node, loop, depth)
            if found is not None:
                return found
        return None

    def _counts_iterations(self, node: nodes.BinOp, frame: Frame, loop: Node) -> bool:
        """``counter % n``: the counter changes within the loop, and it is no text."""
        if isinstance(node.left, nodes.Const | nodes.JoinedStr):
            return False
        if self.facts.guards.depends_on_rank(node.left):
            return False
        for part in walk(node.left):
            if isinstance(part, nodes.Attribute):
                return True
            if isinstance(part, nodes.Name):
                written = resolve(part, frame)
                if isinstance(written.node, nodes.Attribute):
                    return True
                if not isinstance(written.node, nodes.Name):
                    return not isinstance(written.node, nodes.Const)
                unit = written.frame.unit
                bindings = unit.bindings.get(written.node.name, [])
                if unit.globals and written.node.name in unit.globals:
                    return True
                if (
                    any(is_within(b.node, loop) for b in bindings)
                    or written.frame.caller is not None
                ):
                    return True
        return False

    def _named(
        self, node: nodes.Name, frame: Frame, loop: Node, depth: int
    ) -> tuple[Node | None] | None:
        written = resolve(node, frame)
        if written.node is not node:
            return self._search(written.node, written.frame, loop, depth + 1)
        unit = frame.unit
        if node.name not in unit.bindings:
            return None
        for binding in reaching(unit, node.name, node):
            if binding.value is not None and binding.path == () and _is_decision(binding.value):
                found = self._search(binding.value, frame, loop, depth + 1)
                if found is not None:
                    return found
        return None

    def _attribute(
        self, node: nodes.Attribute, frame: Frame, loop: Node, depth: int
    ) -> tuple[Node | None] | None:
        if node.attrname in _ANSWERS:
            return (None,)
        for origin in self.facts.origins(node):
            if isinstance(origin, Expression) and _is_decision(origin.node):
                unit = self.facts.values.unit_of(origin.node)
                found = self._search(origin.node, Frame(unit), loop, depth + 1)
                if found is not None:
                    return found
        return None

    def _answered(self, call: nodes.Call, loop: Node, depth: int) -> tuple[Node | None] | None:
        name = getattr(call.func, "attrname", getattr(call.func, "name", ""))
        if name in _ANSWERS:
            return (None,)
        for unit in self.facts.graph.targets_of(call):
            for value in unit.returned:
                if _is_decision(value):
                    found = self._search(value, Frame(unit), loop, depth + 1)
                    if found is not None:
                        return found
        return None

    def _counted(self, node: nodes.Compare, frame: Frame, loop: Node) -> tuple[Node | None] | None:
        """``count == n`` of a counter that begins again with each window."""
        if len(node.ops) != 1 or node.ops[0][0] not in ("==", ">=", "is"):
            return None
        left, right = node.left, node.ops[0][1]
        for counter, length in ((left, right), (right, left)):
            if isinstance(length, nodes.Const) and length.value in (0, 1, None, True, False):
                continue
            while isinstance(counter, nodes.BinOp) and isinstance(counter.right, nodes.Const):
                counter = counter.left
            if isinstance(counter, nodes.Name | nodes.Attribute):
                stores = self._stores(counter, frame)
                if _counts_up(stores) and _begins_again(stores, loop):
                    return (length,)
        return None

    def _stores(self, counter: Node, frame: Frame) -> list[Binding]:
        if isinstance(counter, nodes.Name):
            return list(frame.unit.bindings.get(counter.name, ()))
        if not isinstance(counter, nodes.Attribute):
            return []
        module = self.facts.values.module_of(counter)
        text = key(counter, Frame(frame.unit))
        return [
            binding
            for unit, _, binding in module.attribute_stores.get(counter.attrname, ())
            if unit.name != "__init__" and key(binding.node, Frame(unit)) == text
        ]


def _counts_up(stores: list[Binding]) -> bool:
    return any(
        isinstance(b.value, nodes.AugAssign)
        and b.value.op == "+="
        and isinstance(b.value.value, nodes.Const)
        and b.value.value.value == 1
        for b in stores
    )


def _begins_again(stores: list[Binding], loop: Node) -> bool:
    return any(
        isinstance(b.value, nodes.Const)
        and b.value.value in (0, 1)
        and not isinstance(b.value.value, bool)
        and (isinstance(b.node, nodes.AssignAttr) or is_within(b.node, loop))
        for b in stores
    )


def _is_decision(value: Node | None) -> bool:
    return isinstance(
        value,
        nodes.Compare | nodes.BoolOp | nodes.UnaryOp | nodes.BinOp | nodes.Call | nodes.IfExp,
    )


def _is_one(node: Node) -> bool:
    return isinstance(node, nodes.Const) and node.value == 1


def _is_callee(node: Node) -> bool:
    return isinstance(node.parent, nodes.Call) and node.parent.func is node


# -- windows that are a loop ------------------------------------------------------------------


def takes_other_data(facts: Facts, loop: Node) -> Certainty | None:
    """Whether each turn of an inner loop works on another part of the data; None: no.

    ``for head in heads`` goes over parts of the model, ``for loss in losses`` over terms of one
    loss; ``next(batches)``, ``batches[i]`` and ``get_batch()`` give other data.  Something
    that each turn hands to what trains is "likely" data.
    """
    if not isinstance(loop, nodes.For) or _turns_once(loop):
        return None
    targets = {n.name for n in walk(loop.target) if isinstance(n, nodes.AssignName)}
    for node in walk_scope(loop):
        if not is_within(node, loop) or is_within(node, loop.iter):
            continue
        if isinstance(node, nodes.Call):
            name = getattr(node.func, "attrname", getattr(node.func, "name", ""))
            if name in _GETTERS:
                return "certain"
        elif isinstance(node, nodes.Subscript) and isinstance(loop.iter, nodes.Call):
            counts = dotted(loop.iter.func) in ("range", "trange")
            if counts and _indexes(node, targets, loop):
                return "certain"
    if _goes_over_batches(facts, loop):
        return "certain"
    return "likely" if _is_handed_on(facts, loop, targets) else None


def _is_handed_on(facts: Facts, loop: nodes.For, targets: set[str]) -> bool:
    """Whether the element of each turn is an argument of what trains, and no part of the model."""
    if isinstance(loop.iter, nodes.Call) and dotted(loop.iter.func) in ("range", "trange"):
        return False
    handed = False
    for node in walk_scope(loop):
        if not isinstance(node, nodes.Name) or node.name not in targets:
            continue
        parent = node.parent
        if _is_callee(node) or facts.roles_of(node):
            return False
        method = parent.attrname if isinstance(parent, nodes.Attribute) else ""
        if method in ("backward", "step", "zero_grad", "parameters", "train"):
            return False
        if isinstance(parent, nodes.Call) and node in parent.args:
            entered = facts.graph.targets_of(parent)
            handed = handed or any(facts.steps.reaches_backward(unit) for unit in entered)
    return handed


def _turns_once(loop: nodes.For) -> bool:
    call = loop.iter
    return (
        isinstance(call, nodes.Call)
        and dotted(call.func) == "range"
        and len(call.args) == 1
        and _is_one(call.args[0])
    )


def _indexes(node: nodes.Subscript, targets: set[str], loop: Node) -> bool:
    """Whether the loop's counter chooses, directly or by an index that is computed from it."""
    names = {n.name for n in walk(node.slice) if isinstance(n, nodes.Name)}
    if names & targets:
        return _is_data(node, loop)
    for inside in walk_scope(loop):
        if not isinstance(inside, nodes.Assign):
            continue
        if isinstance(inside.targets[0], nodes.AssignName) and inside.targets[0].name in names:
            used = {n.name for n in walk(inside.value) if isinstance(n, nodes.Name)}
            if targets & used:
                return _is_data(node, loop)
    return False


def _is_data(node: nodes.Subscript, loop: Node) -> bool:
    """What is indexed is handed on as data: it is not called itself."""
    return not _is_callee(node) and not (
        isinstance(node.parent, nodes.Attribute)
        and _is_callee(node.parent)
        and node.parent.attrname in ("step", "zero_grad", "backward")
    )


def _goes_over_batches(facts: Facts, loop: nodes.For) -> bool:
    iterated = loop.iter
    while isinstance(iterated, nodes.Call) and dotted(iterated.func).rpartition(".")[2] in (
        "enumerate",
        "tqdm",
        "zip",
    ):
        if not iterated.args:
            return False
        iterated = iterated.args[0]
    if facts.roles_of(iterated) & {"loader", "prepared loader", "engine loader"}:
        return True
    if isinstance(iterated, nodes.Call):
        name = getattr(iterated.func, "attrname", "")
        return name in ("chunk", "split", "tensor_split")
    return False
