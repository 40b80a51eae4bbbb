"""Layer 9, feeding: which backward pass the value of a call goes into, along a chain of calls."""

from __future__ import annotations

from collections.abc import Iterator

from astroid import nodes

from ddp_lint.model.backpropagated import loss_of
from ddp_lint.model.facts import Facts
from ddp_lint.model.flow import with_items
from ddp_lint.model.frames import Frame
from ddp_lint.model.modules import Unit
from ddp_lint.model.steps import Happening
from ddp_lint.model.torch_api import NO_GRAD
from ddp_lint.model.tree import SCOPES, Node, dotted, elements

#: Methods and attributes after which no gradient flows back.
_DETACHING = frozenset({"detach", "detach_", "item", "tolist", "numpy", "data", "argmax", "shape",
                        "size", "device", "dtype"})  # fmt: skip
_DEEPEST = 8


class Feeding:
    """Which backward passes of one program a value reaches."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self._names: dict[int, frozenset[str]] = {}

    def backwards(self, happening: Happening) -> frozenset[int]:
        """The backward calls, by identity, that the value of a happening goes into."""
        found: set[int] = set()
        node: Node = happening.node
        for level in range(len(happening.chain), -1, -1):
            unit = happening.unit if level == len(happening.chain) else happening.chain[level][1]
            direct, names, returned = self._flows(node)
            found.update(id(call) for call in direct)
            found.update(self._fed_in(unit, names))
            if not (returned or names & self._returned(unit)) or level == 0:
                break
            node = happening.chain[level - 1][0]
        return frozenset(found)

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

    def _fed_in(self, unit: Unit, names: set[str]) -> Iterator[int]:
        if not names:
            return
        for call in unit.calls:
            if self.facts.steps.is_backward(call):
                lost: list[Node] = [loss_of(call)]
            elif self._goes_back(call):
                lost = [*call.args, *(k.value for k in call.keywords)]
            else:
                continue
            if names & self._closed(unit, lost):
                yield id(call)

    def _returned(self, unit: Unit) -> frozenset[str]:
        known = self._names.get(id(unit))
        if known is None:
            values = [s.value if isinstance(s, nodes.Return) else s for s in unit.returns]
            found = self._closed(unit, [v for v in values if v is not None])
            known = self._names[id(unit)] = found
        return known

    def _closed(self, unit: Unit, todo: list[Node]) -> frozenset[str]:
        """The names whose values go into these expressions, through other names of the unit."""
        found: set[str] = set()
        waiting = [name for node in todo for name in sources(node)]
        while waiting:
            name = waiting.pop()
            if name in found:
                continue
            found.add(name)
            for binding in unit.bindings.get(name, ()):
                value = binding.value
                if value is None or binding.path[:1] in (("param",), ("import",), ("enter",)):
                    continue
                waiting.extend(
                    sources(value.value if isinstance(value, nodes.AugAssign) else value)
                )
            for store in unit.subscript_stores:
                if dotted(store.value) == name and isinstance(store.parent, nodes.Assign):
                    waiting.extend(sources(store.parent.value))
            for call in unit.calls:
                func = call.func
                if (
                    isinstance(func, nodes.Attribute)
                    and func.attrname in ("append", "extend")
                    and dotted(func.expr) == name
                ):
                    waiting.extend(n for a in call.args for n in sources(a))
        return frozenset(found)


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


def sources(node: Node) -> Iterator[str]:
    """The names whose values, with their gradients, go into an expression."""
    stack: list[Node] = [node]
    while stack:
        at = stack.pop()
        if isinstance(at, nodes.Name):
            yield at.name
        elif isinstance(at, nodes.Attribute):
            if at.attrname in _DETACHING:
                continue
            yield dotted(at)
            stack.append(at.expr)
        elif isinstance(at, nodes.Call):
            if isinstance(at.func, nodes.Attribute):
                if at.func.attrname in _DETACHING:
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
