"""Subject: whether a loss that is accumulated over a window is divided by its length."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from astroid import nodes

from ddp_lint.finding import Fix
from ddp_lint.model.accumulation import accelerator_accumulates, cleared_within, in_accumulate
from ddp_lint.model.backpropagated import loss_of
from ddp_lint.model.facts import Facts
from ddp_lint.model.flow import reaching
from ddp_lint.model.frames import Frame, resolve
from ddp_lint.model.gradients import Training, UpdateSpot, Window
from ddp_lint.model.modules import Binding, Unit
from ddp_lint.model.origins import Api, Code, Folder, Instance, Made, Member, Result
from ddp_lint.model.tree import Node, dotted, elements, entries, source
from ddp_lint.model.ways import Event

Factor = Literal["scaled", "plain", "unknown"]

_SCALING = frozenset({"div", "div_", "true_divide", "true_divide_", "divide", "divide_", "mul",
                      "mul_", "multiply", "multiply_"})  # fmt: skip
_KEEPING = frozenset(
    {"mean", "sum", "float", "half", "double", "bfloat16", "to", "cuda", "cpu", "clone", "view",
     "squeeze", "unsqueeze", "reshape", "flatten", "contiguous", "requires_grad_"}
)  # fmt: skip
_MODULES = frozenset({"module", "ddp", "fsdp", "dp", "prepared module", "engine", "prepared",
                      "lightning module", "metric"})  # fmt: skip
_DEEPEST = 8


class Losses:
    """What is done to a whole loss between its making and its backward."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts

    def factor(self, node: Node, frame: Frame, depth: int = 0) -> Factor:
        """Whether the whole value is divided or multiplied by something."""
        if depth > _DEEPEST:
            return "unknown"
        written = resolve(node, frame)
        node, frame = written.node, written.frame
        match node:
            case nodes.Const():
                return "plain"
            case nodes.BinOp(op="/" | "//" | "*", left=left, right=right):
                if _is_one(right) or (node.op == "*" and _is_one(left)):
                    return self.factor(left, frame, depth + 1)
                return "scaled"
            case nodes.BinOp(op="+", left=left, right=right):
                return _any(self.factor(part, frame, depth + 1) for part in (left, right))
            case nodes.BinOp(op="-", left=left):
                return self.factor(left, frame, depth + 1)
            case nodes.UnaryOp(operand=operand):
                return self.factor(operand, frame, depth + 1)
            case nodes.IfExp(body=body, orelse=orelse):
                return _any(self.factor(part, frame, depth + 1) for part in (body, orelse))
            case nodes.Call():
                return self._of_call(node, frame, depth)
            case nodes.Attribute():
                return self._of_attribute(node, frame, depth)
            case nodes.Subscript(value=value):
                return self._of_part(value, _constant(node.slice), frame, depth)
            case nodes.Name():
                return self._of_name(node, frame, depth)
        return "unknown"

    # -- names ------------------------------------------------------------------------------

    def _of_name(self, node: nodes.Name, frame: Frame, depth: int) -> Factor:
        unit = frame.unit
        bindings = reaching(unit, node.name, node) if node.name in unit.bindings else []
        if not bindings or any(b.path == ("param",) for b in bindings):
            return "unknown"
        if self._is_scaled_in_place(node, frame):
            return "scaled"
        return _any(self._of_binding(b, frame, depth) for b in bindings)

    def _is_scaled_in_place(self, node: nodes.Name, frame: Frame) -> bool:
        return any(
            isinstance(call.func, nodes.Attribute)
            and call.func.attrname in _SCALING
            and call.func.attrname.endswith("_")
            and dotted(call.func.expr) == node.name
            for call in frame.unit.calls
        )

    def _of_binding(self, binding: Binding, frame: Frame, depth: int) -> Factor:
        value = binding.value
        if value is None:
            return "unknown"
        if isinstance(value, nodes.AugAssign):
            if value.op in ("/=", "*=", "//="):
                return "scaled"
            return self.factor(value.value, frame, depth + 1)
        if binding.path == ():
            return self.factor(value, frame, depth + 1)
        if binding.path == ("enter",):
            scaled = self._scaled_by_apex(value)
            return "unknown" if scaled is None else self.factor(scaled, frame, depth + 1)
        if len(binding.path) == 1 and isinstance(binding.path[0], int):
            return self._of_part(value, binding.path[0], frame, depth)
        return "unknown"

    def _scaled_by_apex(self, value: Node) -> Node | None:
        """``loss`` of ``amp.scale_loss(loss, optimizer)``."""
        if not isinstance(value, nodes.Call) or not value.args:
            return None
        names = self.facts.names(value)
        return value.args[0] if any(n.endswith("amp.scale_loss") for n in names) else None

    # -- parts ------------------------------------------------------------------------------

    def _of_part(self, value: Node, part: int | str | None, frame: Frame, depth: int) -> Factor:
        """One part of what an expression gives: of a tuple, a dictionary, an output."""
        written = resolve(value, frame)
        value, frame = written.node, written.frame
        if isinstance(value, nodes.Call):
            inside = list(self._returned(value, frame))
            if inside:
                return _any(self._chosen(v, part, f, depth) for v, f in inside)
            return self._of_call(value, frame, depth)
        if isinstance(value, nodes.Name) and value.name in frame.unit.bindings:
            bindings = reaching(frame.unit, value.name, value)
            if any(b.path != () or b.value is None for b in bindings):
                return "unknown"
            return _any(
                self._of_part(b.value, part, frame, depth + 1) for b in bindings if b.value
            )
        return self._chosen(value, part, frame, depth)

    def _chosen(self, value: Node, part: int | str | None, frame: Frame, depth: int) -> Factor:
        if depth > _DEEPEST:
            return "unknown"
        match value, part:
            case ((nodes.Tuple() | nodes.List() as display), int()):
                inside = elements(display)
                if -len(inside) <= part < len(inside):
                    return self.factor(inside[part], frame, depth + 1)
            case ((nodes.Dict() as display), str()):
                for name, one in entries(display):
                    if getattr(name, "value", None) == part:
                        return self.factor(one, frame, depth + 1)
            case ((nodes.Name() | nodes.Call()), _):
                return self._of_part(value, part, frame, depth + 1)
        return "unknown"

    def _of_attribute(self, node: nodes.Attribute, frame: Frame, depth: int) -> Factor:
        base = resolve(node.expr, frame)
        if isinstance(base.node, nodes.Name) and base.node.name == base.frame.unit.self_name:
            stores = [
                (unit, binding)
                for origin in self.facts.origins(base.node)
                if isinstance(origin, Instance)
                for cls in self.facts.values.mro(base.frame.cls or origin.cls)
                for unit, binding in cls.attributes.get(node.attrname, ())
                if not isinstance(binding.value, nodes.Const)
            ]
            if not stores:
                return "unknown"
            return _any(
                self._of_binding(b, Frame(u, cls=base.frame.cls), depth) for u, b in stores
            )
        return self._of_part(node.expr, node.attrname, frame, depth)

    # -- calls ------------------------------------------------------------------------------

    def _of_call(self, call: nodes.Call, frame: Frame, depth: int) -> Factor:
        func = call.func
        names = self.facts.names(call)
        if isinstance(func, nodes.Attribute) and not names:
            if func.attrname in _SCALING:
                return "scaled"
            if func.attrname == "scale" and call.args:
                return self.factor(call.args[0], frame, depth + 1)
            if func.attrname in _KEEPING:
                return self.factor(func.expr, frame, depth + 1)
        if any(name.startswith("torch.") for name in names) and isinstance(func, nodes.Attribute):
            if func.attrname in _SCALING:
                return "scaled"
            if func.attrname in _KEEPING and call.args:
                return self.factor(call.args[0], frame, depth + 1)
        if _sums(call) or any(_sums(made) for made in self._made(func)):
            return "unknown"
        if any(self._sums_inside(unit, 0) for unit in self.facts.graph.targets_of(call)):
            return "unknown"
        inside = list(self._returned(call, frame))
        if inside:
            return _any(self.factor(value, at, depth + 1) for value, at in inside)
        return "plain" if self._makes_loss(func) else "unknown"

    def _returned(self, call: nodes.Call, frame: Frame) -> Iterator[tuple[Node, Frame]]:
        """What the functions and methods that a call enters return; a module is not entered:
        what it does inside is how the loss is made."""
        for origin in self.facts.origins(call.func):
            if not isinstance(origin, Code) or frame.enters(origin.unit):
                continue
            receiver = origin.receiver
            is_forward = origin.unit.name in ("forward", "__call__")
            if is_forward and receiver and self.facts.roles.role(receiver) in _MODULES:
                continue
            cls = receiver.cls if isinstance(receiver, Instance) else None
            inner = Frame(origin.unit, f"{frame.serial}>", call, frame, cls)
            yield from ((value, inner) for value in origin.unit.returned)

    def _sums_inside(self, unit: Unit, depth: int) -> bool:
        """Whether a forward of the project makes its loss as a sum."""
        return any(_sums(call) for call in unit.calls) or (
            depth < 2
            and any(
                self._sums_inside(target, depth + 1)
                for call in unit.calls
                for target in self.facts.graph.targets_of(call)
            )
        )

    def _made(self, func: Node) -> Iterator[nodes.Call]:
        for origin in self.facts.origins(func):
            if isinstance(origin, Made):
                yield origin.call

    def _makes_loss(self, func: Node) -> bool:
        """A model, a criterion or a function of torch: its result is a loss as made."""
        origins = self.facts.origins(func)
        for origin in origins:
            if isinstance(origin, Api | Folder) and origin.name.startswith("builtins."):
                return False
            if isinstance(origin, Api | Folder | Made):
                continue
            if self.facts.roles.role(origin) in _MODULES:
                continue
            if (
                isinstance(origin, Member | Result)
                and self.facts.roles.role(origin.of) in _MODULES
            ):
                continue
            if isinstance(origin, Code) and origin.unit.name in ("forward", "__call__"):
                continue
            return False
        return bool(origins)


def _any(found: Iterable[Factor]) -> Factor:
    answers = set(found)
    if "scaled" in answers:
        return "scaled"
    return "unknown" if "unknown" in answers or not answers else "plain"


def _constant(node: Node) -> int | str | None:
    value = getattr(node, "value", None)
    return value if isinstance(node, nodes.Const) and isinstance(value, int | str) else None


def _is_one(node: Node) -> bool:
    return isinstance(node, nodes.Const) and node.value in (1, 1.0)


def _sums(call: nodes.Call) -> bool:
    """A loss that is a sum to begin with is normalised elsewhere."""
    for keyword in call.keywords:
        if keyword.arg in ("reduction", "size_average", "reduce"):
            return not (isinstance(keyword.value, nodes.Const) and keyword.value.value == "mean")
    return False


# -- the noun ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Unaveraged(UpdateSpot):
    """The backward of a loss that is added up over a window and never divided."""

    window: Window

    @property
    def loss(self) -> Node:
        assert isinstance(self.node, nodes.Call)
        return loss_of(self.node)

    @property
    def loss_text(self) -> str:
        return source(self.loss)

    @property
    def length(self) -> Node | None:
        return self.window.length

    @property
    def length_text(self) -> str:
        return self.window.length_text

    @property
    def fix(self) -> Fix | None:
        """Divide by the length as the gate has it, where it can be named at the backward."""
        length = self.window.length
        if length is None or self.event.frame.caller is not None:
            return None
        if not isinstance(length, nodes.Name | nodes.Attribute | nodes.Const):
            return None
        if self.facts.values.unit_of(length) is not self.event.frame.unit:
            return None
        loss = self.loss
        text = f"{loss.as_string()} / {length.as_string()}"
        func = getattr(self.node, "func", None)
        if isinstance(func, nodes.Attribute) and func.expr is loss:
            text = f"({text})"
        if not isinstance(loss, nodes.Name | nodes.Attribute | nodes.Subscript | nodes.Call):
            return None
        edits = (self.facts.replace(loss, text),)
        return Fix(f"Divide `{source(loss)}` by `{source(length)}`", edits, safe=False)


def unaveraged(training: Training) -> Iterator[Unaveraged]:
    """Backward passes of losses that are added up over a window and never divided."""
    losses = Losses(training.facts)
    cleared = {spot.update for spot in cleared_within(training)}
    for update in training.updates:
        if update in cleared or update.events("rescale"):
            continue
        seen: set[Node] = set()
        for window in update.windows:
            if window.certainty != "certain":
                continue
            for backward in window.within("backward"):
                if backward.node in seen or not _counts_by_hand(training, backward):
                    continue
                target = backward.move.target
                if target is not None and losses.factor(target, backward.frame) == "plain":
                    seen.add(backward.node)
                    yield Unaveraged(training.facts, backward.node, update, backward, window)


def _counts_by_hand(training: Training, backward: Event) -> bool:
    """Whether nobody else divides: no engine, no accelerator that knows the length."""
    how, by = backward.move.how, backward.move.by
    if how in ("plain", "native"):
        return True
    if how != "accelerator" or by is None:
        return False
    roles = training.facts.roles_of(by)
    if "accelerator" not in roles:
        return getattr(getattr(backward.node, "func", None), "attrname", "") == "manual_backward"
    return accelerator_accumulates(training.facts, by) is False and not in_accumulate(
        training, backward
    )


__all__ = ["Losses", "Unaveraged", "unaveraged"]
