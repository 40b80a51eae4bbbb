"""Subject: whether a value carries its autograd graph.

A value of the step is known to carry one if a model made it where autograd records, or if a
backward pass runs on it; what is not known carries none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from astroid import nodes

from ddp_lint.model.facts import Facts
from ddp_lint.model.feeding import Feeding, happening_in
from ddp_lint.model.flow import reaching
from ddp_lint.model.frames import Frame, origins_in, resolve
from ddp_lint.model.grad_mode import GradMode
from ddp_lint.model.modules import Binding
from ddp_lint.model.origins import Api, Code, Made, Origin
from ddp_lint.model.tree import Node, dotted, elements, is_within

#: The graph of a value: freed by a backward of this step but for its nodes, or alive as a whole.
Graph = Literal["freed", "alive"] | None

_KEEPING = frozenset(
    [
        "mean",
        "sum",
        "view",
        "reshape",
        "squeeze",
        "unsqueeze",
        "flatten",
        "float",
        "half",
        "double",
        "bfloat16",
        "to",
        "cuda",
        "cpu",
        "clone",
        "contiguous",
        "exp",
        "log",
        "sqrt",
        "abs",
        "pow",
        "div",
        "mul",
        "add",
        "sub",
        "clamp",
        "neg",
        "max",
        "min",
        "norm",
        "softmax",
        "log_softmax",
        "logsumexp",
        "square",
        "transpose",
        "permute",
        "masked_select",
        "gather",
        "index_select",
        "type_as",
        "t",
        "expand",
        "repeat",
    ]
)
_WITHOUT = frozenset(
    [
        "detach",
        "item",
        "tolist",
        "numpy",
        "argmax",
        "argmin",
        "eq",
        "ne",
        "lt",
        "gt",
        "le",
        "ge",
        "size",
        "dim",
        "numel",
        "backward",
        "sign",
        "round",
        "long",
        "int",
        "bool",
        "byte",
        "isnan",
        "isfinite",
        "isinf",
        "topk",
        "argsort",
        "nonzero",
    ]
)
_FUNCTIONS_WITHOUT = frozenset(
    {"argmax", "argmin", "eq", "ne", "isnan", "isfinite", "isinf", "no_grad", "zeros", "ones",
     "zeros_like", "ones_like", "empty", "rand", "randn", "tensor", "arange", "argsort", "topk",
     "sign", "round", "load"}
)  # fmt: skip
_MODULES = frozenset({"module", "ddp", "fsdp", "dp", "prepared module", "engine"})
_DEEPEST = 8


class Histories:
    """The graphs of the values of one loop's iterations."""

    def __init__(self, facts: Facts, mode: GradMode, loop: Node) -> None:
        self.facts = facts
        self.mode = mode
        self.loop = loop

    def graph(self, node: Node, frame: Frame, depth: int = 0) -> Graph:
        """Whether a value carries a graph, for certain."""
        if depth > _DEEPEST:
            return None
        match node:
            case nodes.Name():
                return self._of_name(node, frame, depth)
            case nodes.BinOp(left=left, right=right) if node.op in ("+", "-", "*", "/", "**", "@"):
                return _joined(
                    self.graph(left, frame, depth + 1), self.graph(right, frame, depth + 1)
                )
            case nodes.UnaryOp(operand=operand) if node.op != "not":
                return self.graph(operand, frame, depth + 1)
            case nodes.Subscript(value=value, slice=part):
                name = getattr(part, "value", 0)
                if isinstance(name, str) and "loss" not in name:
                    return None  # one of several outputs, of which not all have a graph
                return self.graph(value, frame, depth + 1)
            case nodes.Attribute(attrname=name, expr=expr):
                if name == "loss" or "loss" in name or name in ("logits", "last_hidden_state"):
                    return self.graph(expr, frame, depth + 1)
                return None
            case nodes.IfExp(body=body, orelse=orelse):
                one, other = (
                    self.graph(body, frame, depth + 1),
                    self.graph(orelse, frame, depth + 1),
                )
                return _joined(one, other) if one and other else None
            case nodes.Call():
                return self._of_call(node, frame, depth)
        return None

    def passed(self, name: nodes.Name, frame: Frame) -> Iterator[tuple[Node, Frame]]:
        """What the calls on this way pass for a parameter, also through ``**values``."""
        written = resolve(name, frame)
        if written.frame is not frame and written.node is not name:
            yield written.node, written.frame
            return
        if frame.call is None or frame.caller is None:
            return
        for binding in (
            reaching(frame.unit, name.name, name) if name.name in frame.unit.bindings else []
        ):
            items = binding.value
            if binding.path[:1] == ("iter",) and isinstance(items, nodes.Call):
                receiver = getattr(items.func, "expr", None)
                given = getattr(frame.unit.node, "args", None)
                if isinstance(receiver, nodes.Name) and receiver.name == getattr(
                    given, "kwarg", None
                ):
                    named = frame.unit.parameters
                    for keyword in frame.call.keywords:
                        if keyword.arg is not None and keyword.arg not in named:
                            yield keyword.value, frame.caller

    def _of_name(self, node: nodes.Name, frame: Frame, depth: int) -> Graph:
        passed = list(self.passed(node, frame))
        if passed:
            graphs = [self.graph(given, at, depth + 1) for given, at in passed]
            return next((g for g in graphs if g is not None), None)
        unit = frame.unit
        if node.name not in unit.bindings:
            return None
        bindings = reaching(unit, node.name, node)
        if any(b.path[:1] in (("param",), ("import",), ("iter",)) for b in bindings):
            return "freed" if self._is_propagated(node.name, frame, bindings) else None
        found: set[Graph] = set()
        for binding in bindings:
            if binding.value is None or isinstance(binding.value, nodes.Const):
                continue
            if is_within(node, binding.value) and not is_within(binding.node, self.loop):
                continue
            found.add(self._of_binding(binding, frame, depth))
        if None in found or not found:
            return "freed" if found and self._is_propagated(node.name, frame, bindings) else None
        if self._is_propagated(node.name, frame, bindings):
            return "freed"
        return "alive" if "alive" in found else "freed"

    def _is_propagated(self, name: str, frame: Frame, bindings: list[Binding]) -> bool:
        """Itself, or a term of what, a backward of this step runs on; or it went into that."""
        unit = frame.unit
        for binding in bindings:
            if (
                binding.value is not None
                and binding.path == ()
                and (_is_number(binding.value) or self.facts.tensors.on_host(binding.value))
            ):
                return False
        given = [b for b in bindings if not isinstance(b.value, nodes.Const)]
        if given and all(self.mode.on_way(b.node, frame) == "off" for b in given):
            return False  # it goes into a backward as a number does
        if name in self.facts.tensors.backpropagated(unit):
            return True
        made = [b.value for b in bindings if b.path == () and isinstance(b.value, nodes.Call)]
        return len(made) == len(bindings) and any(
            self._is_model(call.func, frame)
            and (name in self.facts.tensors.feeding_backward(unit) or self._goes_back(call, frame))
            for call in made
        )

    def _goes_back(self, call: nodes.Call, frame: Frame) -> bool:
        """Whether a backward runs on what a call gives, also through functions of the project."""
        return bool(self.facts.once(Feeding).backwards(happening_in(call, frame)))

    def _of_binding(self, binding: Binding, frame: Frame, depth: int) -> Graph:
        value = binding.value
        assert value is not None
        if self.mode.on_way(binding.node, frame) != "on":
            return None
        if isinstance(value, nodes.AugAssign):
            return self.graph(value.value, frame, depth + 1)
        if binding.path == ():
            return self.graph(value, frame, depth + 1)
        if isinstance(value, nodes.Call) and isinstance(binding.path[0], int):
            return self._of_call(value, frame, depth, binding.path[0])
        return None

    def _of_call(
        self, call: nodes.Call, frame: Frame, depth: int, part: int | None = None
    ) -> Graph:
        func = call.func
        names = self.facts.names(call)
        if isinstance(func, nodes.Attribute) and not names:
            if func.attrname in _WITHOUT:
                return None
            if func.attrname in _KEEPING:
                return self.graph(func.expr, frame, depth + 1)
        if self._is_model(func, frame):
            if part is not None and part > 0:
                return None  # which of several outputs carry a graph is not known
            return "alive"
        if any(name.startswith(("torch.", "einops.")) for name in names):
            if dotted(func).rpartition(".")[2] in _FUNCTIONS_WITHOUT or not call.args:
                return None
            return self._of_arguments(call, frame, depth)
        if self._is_criterion(func, frame):
            return self._of_arguments(call, frame, depth)
        return self._returned(call, frame, depth, part)

    def _of_arguments(self, call: nodes.Call, frame: Frame, depth: int) -> Graph:
        found: Graph = None
        for argument in call.args:
            parts = [argument]
            if isinstance(argument, nodes.List | nodes.Tuple):
                parts = elements(argument)
            for part in parts:
                found = _joined(found, self.graph(part, frame, depth + 1))
        return found

    def _is_model(self, func: Node, frame: Frame) -> bool:
        """A module with parameters of its own: what it gives carries a graph."""
        if not isinstance(func, nodes.Name | nodes.Attribute):
            return False
        origins = origins_in(self.facts.graph, func, frame)
        roles = {self.facts.roles.role(o) for o in origins}
        return bool(origins) and roles <= _MODULES and not any(map(_is_loss, origins))

    def _is_criterion(self, func: Node, frame: Frame) -> bool:
        origins = origins_in(self.facts.graph, func, frame)
        return bool(origins) and all(map(_is_loss, origins))

    def _returned(self, call: nodes.Call, frame: Frame, depth: int, part: int | None) -> Graph:
        """What every return of the functions entered carries."""
        found: set[Graph] = set()
        for origin in self.facts.origins(call.func):
            if (
                not isinstance(origin, Code)
                or frame.enters(origin.unit)
                or origin.unit.is_generator
            ):
                return None
            inner = Frame(origin.unit, "", call, frame)
            for statement in origin.unit.returns:
                value = statement.value if isinstance(statement, nodes.Return) else statement
                if value is None or self.mode.on_way(value, inner) != "on":
                    return None
                parts = elements(value) if isinstance(value, nodes.Tuple) else []
                if part is not None and part >= len(parts):
                    return None
                one = value if part is None else parts[part]
                found.add(self.graph(one, inner, depth + 1))
        if not found or None in found:
            return None
        return "alive" if "alive" in found else "freed"


def _joined(one: Graph, other: Graph) -> Graph:
    if "alive" in (one, other):
        return "alive"
    return one or other


def _is_loss(origin: Origin) -> bool:
    name = getattr(origin, "name", getattr(getattr(origin, "cls", None), "name", ""))
    return isinstance(origin, Made | Api) and str(name).endswith("Loss")


def _is_number(value: Node | None) -> bool:
    """``x = loss.item()``."""
    return (
        isinstance(value, nodes.Call)
        and isinstance(value.func, nodes.Attribute)
        and value.func.attrname in ("item", "detach", "cpu", "tolist")
    )
