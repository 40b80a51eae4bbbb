"""Subject, part 1: what one call or assignment does to gradients, scaler, optimizer, schedule.

A ``Move`` is read from one node alone; who is meant by a name on a certain way of calls, and in
what order moves happen, is told by the modules that build on this one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal
from weakref import WeakKeyDictionary

from astroid import nodes

from ddp_lint.model.backpropagated import loss_of
from ddp_lint.model.facts import Facts
from ddp_lint.model.modules import Module, Unit, method_around
from ddp_lint.model.origins import (
    Code,
    Expression,
    Instance,
    Item,
    Made,
    Member,
    Origin,
    Param,
    Result,
    Unknown,
)
from ddp_lint.model.reductions import REDUCES, reduced_gradient
from ddp_lint.model.torch_api import CLIPS
from ddp_lint.model.tree import Node, dotted

Kind = Literal[
    "backward", "clip", "unscale", "step", "update", "clear", "rescale", "schedule", "reduce"
]

_OTHER_CLIPS = frozenset(
    {
        "apex.contrib.clip_grad.clip_grad_norm_",
        "apex.contrib.clip_grad.clip_grad.clip_grad_norm_",
        "timm.utils.dispatch_clip_grad",
        "timm.utils.clip_grad.dispatch_clip_grad",
    }
)
_METHODS = frozenset(
    {"backward", "manual_backward", "step", "update", "unscale_", "unscale_gradients", "zero_grad",
     "zero_", "clip_grad_norm_", "clip_grad_norm", "clip_grad_value_", "clip_gradients", "mul_",
     "div_", "scale_grads", "clip_grads"}
)  # fmt: skip
_RESCALING_WORDS = ("scale_grad", "multiply_grad", "rescale", "normalize_grad", "divide_grad",
                    "average_grad", "unscale_grad", "sync_grad", "reduce_grad",
                    "process_grad")  # fmt: skip
_FUNCTIONS = (
    CLIPS
    | _OTHER_CLIPS
    | REDUCES
    | {"torch.autograd.backward", "torch._foreach_mul_", "torch._foreach_div_"}
)
#: What may be a move in a unit, for all the programs that it is part of.
_TELLING: WeakKeyDictionary[Unit, tuple[nodes.Call, ...]] = WeakKeyDictionary()
_OPTIMIZERS = frozenset({"optimizer", "prepared optimizer", "engine optimizer"})
_SCHEDULERS = frozenset({"scheduler", "own scheduler", "prepared scheduler", "engine scheduler"})
_ENGINES = frozenset({"engine"})


@dataclass(frozen=True, eq=False)
class Move:
    """One node that does something to the gradients or to what uses them.

    ``by`` is the scaler, accelerator or engine that does it, ``target`` what it is done to: the
    loss, the parameters, the optimizer, the schedule.  ``how`` tells variants apart: "scaler",
    "plain", "accelerator", "engine", "native", "hand",
    "apex" (of the optimizer's master copies), "own" (a method that looks after the scale itself).
    """

    kind: Kind
    node: Node
    how: str
    target: Node | None = None
    by: Node | None = None


class Moves:
    """The moves of one program, each read once."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self._wrappers = facts.words.scaler_wrappers
        self._of: dict[int, tuple[Move, ...]] = {}
        self._kinds: dict[int, frozenset[Kind]] = {}
        self._stepped: dict[str, frozenset[str]] = {}
        self._methods: dict[str, dict[str, set[str]]] = {}

    def of(self, node: Node) -> tuple[Move, ...]:
        """What ``node`` (a call or a statement) does, in the order in which it does it."""
        known = self._of.get(id(node))
        if known is None:
            known = self._of[id(node)] = tuple(self._read(node))
        return known

    def kinds(self, unit: Unit) -> frozenset[Kind]:
        """What running ``unit`` may do, calls entered."""
        known = self._kinds.get(id(unit))
        if known is not None:
            return known
        self._kinds[id(unit)] = frozenset()
        if self._is_of_wrapper(unit):
            return self._kinds[id(unit)]
        found: set[Kind] = set()
        for call in self._telling(unit):
            found.update(move.kind for move in self.of(call))
            for closure in self.closures(call):
                found.update(self.kinds(closure))
        for call in unit.calls:
            for target in self.facts.graph.targets_of(call):
                found.update(self.kinds(target))
        for statement in _gradient_stores(unit):
            found.update(move.kind for move in self.of(statement))
        self._kinds[id(unit)] = frozenset(found)
        return self._kinds[id(unit)]

    def _telling(self, unit: Unit) -> Iterable[nodes.Call]:
        """The calls of a unit that may be moves, whatever program it is in."""
        if self.facts.steps.has_steppers or self._wrappers:
            return unit.calls
        known = _TELLING.get(unit)
        if known is None:
            known = _TELLING[unit] = tuple(c for c in unit.calls if self._may_move(c))
        return known

    def _may_move(self, call: nodes.Call) -> bool:
        name = getattr(call.func, "attrname", getattr(call.func, "name", ""))
        return (
            name in _METHODS
            or any(word in name for word in _RESCALING_WORDS)
            or not _FUNCTIONS.isdisjoint(self.facts.names(call))
        )

    def closures(self, call: nodes.Call) -> Iterator[Unit]:
        """Functions handed to ``optimizer.step``, which calls them."""
        if getattr(call.func, "attrname", "") != "step":
            return
        for argument in [*call.args, *(k.value for k in call.keywords if k.arg == "closure")]:
            if isinstance(argument, nodes.Name | nodes.Attribute):
                for origin in self.facts.origins(argument):
                    if isinstance(origin, Code):
                        yield origin.unit

    # -- reading ----------------------------------------------------------------------------

    def _read(self, node: Node) -> Iterator[Move]:
        if isinstance(node, nodes.Call):
            yield from self._read_call(node)
        else:
            yield from _read_store(node)

    def _read_call(self, call: nodes.Call) -> Iterator[Move]:
        func = call.func
        name = getattr(func, "attrname", getattr(func, "name", ""))
        if isinstance(func, nodes.Attribute) and self._is_wrapper(func.expr):
            yield from _read_wrapper(call, name, func.expr)
            return
        if isinstance(func, nodes.Name) or name not in _METHODS:
            yield from self._read_function(call, name)
            return
        if self.facts.names(call) & (CLIPS | _OTHER_CLIPS):
            yield from self._torch_clip(call)
            return
        if self.facts.steps.is_backward(call):
            yield self._backward(call)
            return
        assert isinstance(func, nodes.Attribute)
        receiver = func.expr
        entered = self.facts.graph.targets_of(call)
        roles = self.facts.roles_of(receiver)
        if entered and not roles & (_OPTIMIZERS | {"scaler"}):
            if name == "zero_grad" and roles & {"module", "ddp", "fsdp"}:
                yield Move("clear", call, "module", receiver)
            return
        yield from self._read_method(call, name, receiver, roles)

    def _read_method(
        self, call: nodes.Call, name: str, receiver: Node, roles: frozenset[str]
    ) -> Iterator[Move]:
        match name:
            case "step":
                yield from self._step(call, receiver, roles)
            case "update":
                if self.is_scaler(receiver) and len(call.args) <= 1:
                    yield Move("update", call, "scaler", by=receiver)
            case "unscale_" if call.args:
                yield Move("unscale", call, "scaler", call.args[0], receiver)
            case "unscale_gradients":
                yield Move("unscale", call, "accelerator", None, receiver)
            case "zero_grad":
                yield Move("clear", call, _clearer(roles), receiver)
            case "zero_" if _is_gradient(receiver):
                yield Move("clear", call, "hand", _parameter_of(receiver))
            case "mul_" | "div_" if _is_gradient(receiver):
                yield Move("rescale", call, "hand", _parameter_of(receiver))
            case "clip_grad_norm_" | "clip_grad_value_":
                if "fsdp" in roles:  # as torch's, over the shards
                    yield Move("clip", call, "torch", receiver)
                    return
                how = "accelerator" if "accelerator" in roles else "own"
                yield Move("clip", call, how, call.args[0] if call.args else None, receiver)
            case "clip_grad_norm" | "clip_gradients":
                yield Move("clip", call, "own", None, receiver)
            case "scale_grads" | "clip_grads":
                yield Move("rescale", call, "own", None, receiver)

    def _read_function(self, call: nodes.Call, name: str) -> Iterator[Move]:
        names = self.facts.names(call)
        if names & (CLIPS | _OTHER_CLIPS):
            yield from self._torch_clip(call)
        elif self._is_native_scaler(call):
            how = "own" if self._is_wrapper(call.func) else "native"
            yield Move("backward", call, how, call.args[0], call.func)
            yield Move("step", call, how, call.args[1], call.func)
        elif name in ("backward", "manual_backward") or "torch.autograd.backward" in names:
            if self.facts.steps.is_backward(call):
                yield self._backward(call)
        elif names & {"torch._foreach_mul_", "torch._foreach_div_"}:
            yield Move("rescale", call, "hand")
        elif names & REDUCES:
            gradient = reduced_gradient(self.facts, call)
            if gradient is not None:
                here = self.facts.values.unit_of(gradient) is self.facts.values.unit_of(call)
                yield Move("reduce", call, "hand", gradient.expr if here else None)
        elif any(word in name for word in _RESCALING_WORDS) and not (
            self.facts.graph.targets_of(call)
        ):
            yield Move("rescale", call, "own")

    def _is_native_scaler(self, call: nodes.Call) -> bool:
        return (
            len(call.args) >= 2
            and bool(self.facts.steps.has_steppers or self._wrappers)
            and "native scaler" in self.facts.roles_of(call.func)
        )

    # -- the project's own wrappers of a scaler, which the settings name --------------------

    def _is_wrapper(self, node: Node) -> bool:
        return bool(self._wrappers) and any(
            self.facts.roles.is_called(origin, self._wrappers)
            for origin in self.facts.origins(node)
        )

    def _is_of_wrapper(self, unit: Unit) -> bool:
        """What such a class does inside is its own affair."""
        method = method_around(unit) if self._wrappers else None
        return (
            method is not None
            and method.owner is not None
            and self.facts.roles.is_called(Instance(method.owner, None), self._wrappers)
        )

    def _torch_clip(self, call: nodes.Call) -> Iterator[Move]:
        if not call.args or _is_infinite(call):
            return
        target = call.args[0]
        if isinstance(target, nodes.Call) and dotted(target.func).endswith("master_params"):
            yield Move("clip", call, "apex", target)
        else:
            yield Move("clip", call, "torch", target)

    def _backward(self, call: nodes.Call) -> Move:
        func = call.func
        if isinstance(func, nodes.Attribute) and call.args:
            roles = self.facts.roles_of(func.expr)
            if roles & _ENGINES:
                return Move("backward", call, "engine", call.args[0], func.expr)
            if roles & {"accelerator", "fabric"} or func.attrname == "manual_backward":
                return Move("backward", call, "accelerator", call.args[0], func.expr)
            owned = loss_of(call) is call.args[0] and not isinstance(func.expr, nodes.Call)
            if owned and not self.facts.names(call):
                return Move("backward", call, "own", call.args[0], func.expr)
        return Move("backward", call, "plain", _propagated(call))

    def _step(self, call: nodes.Call, receiver: Node, roles: frozenset[str]) -> Iterator[Move]:
        if call.args and self.is_scaler(receiver):
            yield Move("step", call, "scaler", call.args[0], receiver)
        elif roles & _ENGINES:
            yield Move("step", call, "engine", receiver)
        elif roles & _SCHEDULERS:
            yield Move("schedule", call, "plain", receiver)
        elif "prepared optimizer" in roles:
            yield Move("step", call, "prepared", receiver)
        elif roles & _OPTIMIZERS or (
            not roles and not call.args and self._is_used_as_optimizer(call, receiver)
        ):
            yield Move("step", call, "plain", receiver)

    # -- what a thing is --------------------------------------------------------------------

    def is_scaler(self, node: Node) -> bool:
        """A gradient scaler by what it is; where that is not known, by how it is used."""
        origins = self.facts.origins(node)
        roles = {self.facts.roles.role(o) for o in origins}
        if "scaler" in roles:
            return True
        if roles - {""} or any(isinstance(o, Instance | Made) for o in origins):
            return False
        text = dotted(node)
        return bool(text) and {"scale", "step"} <= self._methods_called(node).get(text, set())

    def _methods_called(self, node: Node) -> dict[str, set[str]]:
        module = self.facts.values.module_of(node)
        known = self._methods.get(module.key)
        if known is None:
            known = self._methods[module.key] = _methods_by_receiver(module)
        return known

    def _is_used_as_optimizer(self, call: nodes.Call, receiver: Node) -> bool:
        """Nobody says what it is, but its gradients are cleared, or a scaler steps it."""
        text = dotted(receiver)
        if not text or not _is_open(self.facts.origins(receiver)):
            return False
        methods = self._methods_called(receiver).get(text, set())
        if "backward" in methods or "state" in methods:
            return False
        return "zero_grad" in methods or text in self._handed_to_scalers(receiver)

    def _handed_to_scalers(self, node: Node) -> frozenset[str]:
        module = self.facts.values.module_of(node)
        known = self._stepped.get(module.key)
        if known is None:
            known = frozenset(
                dotted(call.args[0])
                for unit in module.units
                for call in unit.calls
                if call.args and getattr(call.func, "attrname", "") in ("step", "unscale_")
            )
            self._stepped[module.key] = known
        return known


def _read_wrapper(call: nodes.Call, name: str, wrapper: Node) -> Iterator[Move]:
    """A method of a class that scales, unscales, clips and steps by itself."""
    first = call.args[0] if call.args else None
    match name:
        case "backward" if first is not None:
            yield Move("backward", call, "own", first, wrapper)
        case "step":
            yield Move("step", call, "own", first, wrapper)
        case "unscale_" | "unscale":
            yield Move("unscale", call, "own", first, wrapper)
        case _ if "clip" in name:
            yield Move("clip", call, "own", first, wrapper)


def _methods_by_receiver(module: Module) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for unit in module.units:
        for call in unit.calls:
            if isinstance(call.func, nodes.Attribute) and (text := dotted(call.func.expr)):
                found.setdefault(text, set()).add(call.func.attrname)
    return found


def _is_open(origins: Iterable[Origin]) -> bool:
    """Whether it may be anything: a parameter that nobody passes, or a thing out of sight."""
    return all(
        isinstance(o, Param | Unknown | Member | Result | Item | Expression) for o in origins
    )


def _clearer(roles: frozenset[str]) -> str:
    if roles & _OPTIMIZERS:
        return "prepared" if "prepared optimizer" in roles else "optimizer"
    if roles & {"module", "ddp", "fsdp", "dp", "prepared module", "engine"}:
        return "module"
    return "own"


def _propagated(call: nodes.Call) -> Node:
    """What the backward runs on, a scaled loss with its ``scale``."""
    func = call.func
    if isinstance(func, nodes.Attribute) and func.attrname == "backward":
        own = isinstance(func.expr, nodes.Call | nodes.BinOp | nodes.Subscript)
        if own or not call.args or loss_of(call) is not call.args[0]:
            return func.expr
    return call.args[0] if call.args else call


def _is_infinite(call: nodes.Call) -> bool:
    """A limit without end: the call only measures the norm."""
    limits = [
        *call.args[1:2],
        *(k.value for k in call.keywords if k.arg in ("max_norm", "clip_value")),
    ]
    return any(
        dotted(limit).rpartition(".")[2] == "inf"
        or (
            isinstance(limit, nodes.Call)
            and dotted(limit.func) == "float"
            and bool(limit.args)
            and getattr(limit.args[0], "value", "") in ("inf", "infinity")
        )
        for limit in limits
    )


def _is_gradient(node: Node) -> bool:
    """``p.grad``, ``p.grad.data``, or a name that says gradient."""
    at = node
    while isinstance(at, nodes.Attribute) and at.attrname == "data":
        at = at.expr
    if isinstance(at, nodes.Call) and isinstance(at.func, nodes.Attribute):
        at = at.func.expr if at.func.attrname in ("detach", "detach_") else at
    name = getattr(at, "attrname", getattr(at, "name", ""))
    return name in ("grad", "grads", "gradient", "main_grad")


def _parameter_of(gradient: Node) -> Node | None:
    at = gradient
    while isinstance(at, nodes.Attribute) and at.attrname in ("data", "grad"):
        at = at.expr
    return at if at is not gradient else None


def _read_store(statement: Node) -> Iterator[Move]:
    match statement:
        case nodes.AugAssign(target=target, op=op):
            gradient = _stored_gradient(target)
            if gradient is not None and op in ("*=", "/="):
                yield Move("rescale", statement, "hand", gradient.expr)
        case nodes.Delete(targets=targets):
            for deleted in targets:
                gradient = _stored_gradient(deleted)
                if gradient is not None:
                    yield Move("clear", statement, "hand", gradient.expr)
        case nodes.Assign(targets=targets, value=value):
            for stored in targets:
                gradient = _stored_gradient(stored)
                if gradient is not None:
                    kind: Kind = "rescale" if _mentions_gradient(value) else "clear"
                    yield Move(kind, statement, "hand", gradient.expr)


def _stored_gradient(
    target: Node,
) -> nodes.AssignAttr | nodes.DelAttr | nodes.Attribute | None:
    """``p.grad`` of ``p.grad = ...`` or ``p.grad.data = ...``."""
    at = target
    while isinstance(at, nodes.AssignAttr | nodes.DelAttr | nodes.Attribute):
        if at.attrname != "data":
            return at if at.attrname in ("grad", "main_grad") else None
        at = at.expr
    return None


def _mentions_gradient(value: Node) -> bool:
    return any(
        isinstance(part, nodes.Attribute) and part.attrname == "grad"
        for part in [value, *value.nodes_of_class(nodes.Attribute)]
    )


def _gradient_stores(unit: Unit) -> Iterator[Node]:
    for unit_of_store, _, binding in (
        store
        for name in ("grad", "main_grad", "data")
        for store in unit.module.attribute_stores.get(name, ())
    ):
        if unit_of_store is unit:
            yield binding.node.statement()
