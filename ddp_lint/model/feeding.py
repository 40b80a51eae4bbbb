"""Layer 9, feeding: which backward pass the value of a call goes into, along a chain of calls."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from astroid import nodes

from ddp_lint.model.backpropagated import loss_of
from ddp_lint.model.facts import Facts
from ddp_lint.model.flow import loops_around, reaching, with_items
from ddp_lint.model.frames import Frame
from ddp_lint.model.modules import Unit
from ddp_lint.model.passing import argument_for
from ddp_lint.model.steps import Happening
from ddp_lint.model.torch_api import NO_GRAD
from ddp_lint.model.tree import SCOPES, Node, dotted, elements, precedes, statement

#: Methods and attributes after which no gradient flows back.
_DETACHING = frozenset({"detach", "detach_", "item", "tolist", "numpy", "data", "argmax", "shape",
                        "size", "device", "dtype"})  # fmt: skip


@dataclass
class _Used:
    """What some expressions are made of: names, and the statements that gave them these values."""

    statements: set[int] = field(default_factory=set)
    names: set[str] = field(default_factory=set)


class Feeding:
    """Which backward passes of one program a value reaches."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self._used: dict[int, _Used] = {}
        self._lost: dict[int, list[tuple[nodes.Call, _Used]]] = {}

    def backwards(self, happening: Happening) -> frozenset[int]:
        """The backward calls, by identity, that the value of a happening goes into."""
        found: set[int] = set()
        node: Node = happening.node
        for level in range(len(happening.chain), -1, -1):
            unit = happening.unit if level == len(happening.chain) else happening.chain[level][1]
            direct, names, returned = self._flows(node)
            found.update(id(call) for call in direct)
            made_at = statement(node)
            found.update(self._fed_in(unit, made_at, names))
            if level == 0:
                break
            if not returned and not _is_used(unit, made_at, names, self._returned(unit)):
                break
            node = happening.chain[level - 1][0]
        return frozenset(found)

    def names_in(self, node: Node, frame: Frame) -> frozenset[str]:
        """The names that a value is made of, with its gradients or without: those of its unit,
        and of its callers where the unit is handed it."""
        found = self._closed(frame.unit, [node], frozenset()).names
        every = set(found)
        if frame.call is not None and frame.caller is not None:
            for name in found & set(frame.unit.parameters):
                given = argument_for(frame.call, frame.unit, name)
                if given is not None:
                    every |= self.names_in(given, frame.caller)
        return frozenset(every)

    def _flows(self, node: Node) -> tuple[list[nodes.Call], set[str], bool]:
        """Where a value goes from its expression: backward calls, names, and the caller."""
        direct: list[nodes.Call] = []
        at, parent = node, node.parent
        while parent is not None and not at.is_statement:
            if isinstance(parent, nodes.Attribute) and parent.attrname in _DETACHING:
                return direct, set(), False
            call = parent.parent if isinstance(parent, nodes.Attribute) else None
            if (
                isinstance(parent, nodes.Call)
                and at is not parent.func
                and self._goes_back(parent)
            ):
                direct.append(parent)
            if isinstance(call, nodes.Call) and self.facts.steps.is_backward(call):
                direct.append(call)
            if isinstance(parent, SCOPES):
                return direct, set(), isinstance(parent, nodes.Lambda)
            at, parent = parent, parent.parent
        match at:
            case nodes.Assign():
                return direct, {n for target in at.targets for n in _targets(target)}, False
            case nodes.AnnAssign() | nodes.AugAssign():
                return direct, set(_targets(at.target)), False
            case nodes.Return():
                return direct, set(), True
            case nodes.Expr(value=nodes.Call(func=nodes.Attribute(attrname="append") as func)):
                return direct, {dotted(func.expr)}, False
        return direct, set(), False

    def _goes_back(self, call: nodes.Call) -> bool:
        """Whether what is handed to a call is backpropagated there."""
        if self.facts.steps.is_backward(call):
            return True
        return any(
            self.facts.steps.reaches_backward(target) and self._hands_on(call, target)
            for target in self.facts.graph.targets_of(call)
            if target.is_function
        )

    def _hands_on(self, call: nodes.Call, target: Unit) -> bool:
        return bool(self.facts.tensors.backpropagated(target) & set(target.parameters)) and bool(
            call.args or call.keywords
        )

    def _fed_in(self, unit: Unit, made_at: Node, names: set[str]) -> Iterator[int]:
        """The backward calls of a unit into which go the names that a statement gives a value."""
        if not names:
            return
        for call, used in self._lost_in(unit):
            if _may_follow(call, made_at) and _is_used(unit, made_at, names, used):
                yield id(call)

    def _lost_in(self, unit: Unit) -> list[tuple[nodes.Call, _Used]]:
        """Backward calls of a unit, and calls that lead to one, with what goes into them."""
        known = self._lost.get(id(unit))
        if known is None:
            known = self._lost[id(unit)] = [
                (call, self._closed(unit, lost))
                for call in unit.calls
                if (lost := self._backpropagated(call)) is not None
            ]
        return known

    def _backpropagated(self, call: nodes.Call) -> list[Node] | None:
        if self.facts.steps.is_backward(call):
            return [loss_of(call)]
        if self._goes_back(call):
            return [*call.args, *(k.value for k in call.keywords)]
        return None

    def _returned(self, unit: Unit) -> _Used:
        known = self._used.get(id(unit))
        if known is None:
            known = self._used[id(unit)] = self._closed(unit, unit.returned)
        return known

    def _closed(self, unit: Unit, todo: list[Node], stops: frozenset[str] = _DETACHING) -> _Used:
        """What goes into these expressions, through other names of the unit."""
        found, seen = _Used(), set[int]()
        waiting = [one for node in todo for one in _parts(node, stops)]
        while waiting:
            at = waiting.pop()
            name = dotted(at)
            if isinstance(at, nodes.Name) and name in unit.bindings:
                for binding in reaching(unit, name, at):
                    if id(binding) in seen:
                        continue
                    seen.add(id(binding))
                    found.statements.add(id(statement(binding.node)))
                    value = binding.value
                    if value is None or binding.path[:1] in (("param",), ("import",), ("enter",)):
                        continue
                    value = value.value if isinstance(value, nodes.AugAssign) else value
                    waiting.extend(_parts(value, stops))
            if name not in found.names:
                found.names.add(name)
                for value in _put_into(unit, name):
                    waiting.extend(_parts(value, stops))
        return found


def _put_into(unit: Unit, name: str) -> Iterator[Node]:
    """What is put into the container of this name, bit by bit."""
    for store in unit.subscript_stores:
        if dotted(store.value) == name and isinstance(store.parent, nodes.Assign):
            yield store.parent.value
    for call in unit.calls:
        func = call.func
        if (
            isinstance(func, nodes.Attribute)
            and func.attrname in ("append", "extend")
            and dotted(func.expr) == name
        ):
            yield from call.args


def _is_used(unit: Unit, made_at: Node, names: set[str], used: _Used) -> bool:
    """Whether one of the names that a statement gives a value is used with that value."""
    return any(
        id(made_at) in used.statements if _binds(unit, made_at, name) else name in used.names
        for name in names
    )


def _binds(unit: Unit, made_at: Node, name: str) -> bool:
    return any(statement(binding.node) is made_at for binding in unit.bindings.get(name, ()))


def _may_follow(later: Node, earlier: Node) -> bool:
    """Whether ``later`` may run after ``earlier``: below it, or in the next round of a loop."""
    around = list(loops_around(earlier))
    return precedes(earlier, later) or any(loop in around for loop in loops_around(later))


def _targets(target: Node) -> Iterator[str]:
    match target:
        case nodes.AssignName():
            yield target.name
        case nodes.AssignAttr():
            yield dotted(target)
        case nodes.Subscript():
            yield dotted(target.value)
        case nodes.Tuple() | nodes.List():
            for element in elements(target):
                yield from _targets(element)
        case nodes.Starred():
            yield from _targets(target.value)


def _parts(node: Node, stops: frozenset[str]) -> Iterator[Node]:
    """The names, as they are written, whose values go into an expression other than through one
    of the attributes and methods ``stops``."""
    stack: list[Node] = [node]
    while stack:
        at = stack.pop()
        if isinstance(at, nodes.Name):
            yield at
        elif isinstance(at, nodes.Attribute):
            if at.attrname in stops:
                continue
            yield at
            stack.append(at.expr)
        elif isinstance(at, nodes.Call):
            if isinstance(at.func, nodes.Attribute):
                if at.func.attrname in stops:
                    continue
                stack.append(at.func.expr)
            stack.extend([*at.args, *(k.value for k in at.keywords)])
        elif not isinstance(at, (*SCOPES, nodes.Compare)):
            stack.extend(at.get_children())


def frame_of(happening: Happening) -> Frame:
    """The frame in which something happens."""
    units = [unit for _, unit in happening.chain] + [happening.unit]
    frame = Frame(units[0])
    for (call, _), unit in zip(happening.chain, units[1:], strict=True):
        frame = Frame(unit, call=call, caller=frame)
    return frame


def happening_in(node: Node, frame: Frame) -> Happening:
    """What happens in a frame."""
    frames = reversed(list(frame.outward))
    return Happening(
        node, frame.unit, tuple((f.call, f.caller.unit) for f in frames if f.call and f.caller)
    )


def without_gradients(facts: Facts, happening: Happening) -> bool:
    """Whether something happens under ``no_grad``, there or around a call that leads there."""
    for node, unit in [*happening.chain, (happening.node, happening.unit)]:
        for item, _ in with_items(node):
            if _switches_off(facts, item):
                return True
        for decorator in unit.decorators:
            if _switches_off(facts, decorator):
                return True
    return False


def _switches_off(facts: Facts, item: Node) -> bool:
    func = item.func if isinstance(item, nodes.Call) else item
    names = {getattr(origin, "name", "") for origin in facts.values.of(func)}
    if names & NO_GRAD:
        return True
    if "torch.set_grad_enabled" in names and isinstance(item, nodes.Call) and item.args:
        given = item.args[0]
        return not (isinstance(given, nodes.Const) and given.value is True)
    return False
