"""Layer 11, collectives: calls that all ranks of the group have to make, also hidden ones."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from astroid import nodes

from ddp_lint.model.buffers import broadcasts
from ddp_lint.model.facts import Facts
from ddp_lint.model.feeding import Feeding
from ddp_lint.model.flow import conditions, with_items
from ddp_lint.model.frames import Frame, origins_in, resolve
from ddp_lint.model.guards import RANKS
from ddp_lint.model.modules import Unit, method_around
from ddp_lint.model.origins import Made
from ddp_lint.model.steps import Happening
from ddp_lint.model.torch_api import COLLECTIVE_METHODS, COLLECTIVES, ROLES
from ddp_lint.model.wrappers import inner_of, is_narrowed, kind

#: Where the process group stands among the arguments of a collective.
_GROUP_AT = {
    "barrier": 0, "monitored_barrier": 0, "all_reduce": 2, "broadcast": 2, "all_gather": 2,
    "all_gather_object": 2, "broadcast_object_list": 2, "all_gather_into_tensor": 2, "reduce": 3,
    "gather": 3, "gather_object": 3, "scatter": 3, "scatter_object_list": 3, "reduce_scatter": 3,
    "reduce_scatter_tensor": 3, "all_to_all": 2, "all_to_all_single": 4,
}  # fmt: skip
_METHODS = {
    role: methods | {"prepare"} if role == "accelerator" else methods
    for role, methods in COLLECTIVE_METHODS.items()
}
_SYNCING = frozenset({"ddp", "prepared", "fsdp", "engine"})
_DEEPEST = 7


@dataclass(frozen=True)
class Collective:
    """A collective that a call makes: what it is called, where it stands, and by which calls."""

    name: str
    node: nodes.Call
    chain: tuple[nodes.Call, ...] = ()


class Collectives:
    """What the calls of one program send to all ranks."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self._may: dict[int, bool] = {}
        self._may_calls: dict[int, bool] = {}

    # -- one call ---------------------------------------------------------------------------

    def direct(self, call: nodes.Call, frame: Frame | None = None) -> str | None:
        """The collective that this very call is; None for all others."""
        for name in self.facts.names(call):
            if name in COLLECTIVES:
                return None if self._is_of_a_group(name, call) else name.rpartition(".")[2]
            if ROLES.get(name) in ("ddp", "fsdp") and name.rpartition(".")[2][:1].isupper():
                return "wrapping"
        func = call.func
        if isinstance(func, nodes.Attribute):
            for role, methods in _METHODS.items():
                if func.attrname in methods and role in self.facts.roles_of(func.expr):
                    return f"{role}.{func.attrname}"
            if func.attrname == "full_tensor" and not call.args:
                return "full_tensor"
            if func.attrname == "log" and self._is_synced_log(call):
                return "log(sync_dist=True)"
        if frame is not None and self._broadcasts_buffers(call, frame):
            return "broadcast of buffers"
        if self.is_synced_backward(call):
            return "all-reduce of gradients"
        return None

    def _is_of_a_group(self, name: str, call: nodes.Call) -> bool:
        given = [k.value for k in call.keywords if k.arg in ("group", "process_group")]
        index = _GROUP_AT.get(name.rpartition(".")[2])
        if not given and index is not None:
            given = call.args[index : index + 1]
        return any(not (isinstance(g, nodes.Const) and g.value is None) for g in given)

    def _is_synced_log(self, call: nodes.Call) -> bool:
        method = method_around(self.facts.values.unit_of(call))
        if method is None or method.owner is None:
            return False
        bases = self.facts.values.external_bases(method.owner)
        return any(base.endswith("LightningModule") for base in bases) and any(
            k.arg == "sync_dist" and isinstance(k.value, nodes.Const) and k.value.value is True
            for k in call.keywords
        )

    def _broadcasts_buffers(self, call: nodes.Call, frame: Frame) -> bool:
        func = call.func
        if isinstance(func, nodes.Attribute) and func.attrname == "forward":
            func = func.expr
        if not isinstance(func, nodes.Name | nodes.Attribute):
            return False
        written = resolve(func, frame)
        made = [
            origin
            for origin in origins_in(self.facts.graph, func, frame)
            if kind(self.facts, origin) == "ddp"
        ]
        if not made or inner_of(self.facts, written.node) or is_narrowed(self.facts, written.node):
            return False
        return all(isinstance(o, Made) and broadcasts(self.facts, o.call) for o in made)

    def is_synced_backward(self, call: nodes.Call) -> bool:
        """Whether it averages the gradients of a wrapper that runs forward in this function."""
        if not self.facts.steps.is_backward(call):
            return False
        if any("no_sync" in item.as_string() for item, _ in with_items(call)):
            return False
        unit = self.facts.values.unit_of(call)
        feeding = self.facts.once(Feeding)
        return any(
            self.is_wrapped_forward(other)
            and id(call) in feeding.backwards(Happening(other, unit, ()))
            for other in unit.calls
        )

    def is_wrapped_forward(self, call: nodes.Call) -> bool:
        func = call.func
        if isinstance(func, nodes.Attribute) and func.attrname == "forward":
            func = func.expr
        if not isinstance(func, nodes.Name | nodes.Attribute):
            return False
        return (
            any(kind(self.facts, origin) in _SYNCING for origin in self.facts.origins(func))
            and inner_of(self.facts, func) is None
        )

    # -- what a call reaches ----------------------------------------------------------------

    def reached(self, call: nodes.Call, frame: Frame) -> list[Collective]:
        """The collectives that a call certainly makes: itself, or in what it enters."""
        name = self.direct(call, frame)
        if name is not None:
            return [Collective(name, call)]
        found: dict[str, Collective] = {}
        if len(frame.chain) >= _DEEPEST:
            return []
        for target in self.facts.graph.targets_of(call):
            if not target.is_function or target.is_generator or frame.enters(target):
                continue
            if not self.may_reach(target) or target.is_cached:
                continue
            inside = Frame(target, call=call, caller=frame)
            for inner in target.calls:
                if self._is_sure(inner):
                    for one in self.reached(inner, inside):
                        deeper = Collective(one.name, one.node, (inner, *one.chain))
                        found.setdefault(
                            one.name, deeper if one.chain else Collective(one.name, one.node)
                        )
        return list(found.values())

    def _is_sure(self, call: nodes.Call) -> bool:
        """Whether the function that holds the call makes it on every way, on every rank."""
        every = conditions(call)
        return all(self.facts.guards.all_hold(every, rank) is True for rank in RANKS)

    def may_make(self, call: nodes.Call) -> bool:
        """Whether a call may make a collective, itself or in what it enters: the cheap question
        before the exact one."""
        return self._may_be(call) or any(
            self.may_reach(target) for target in self.facts.graph.targets_of(call)
        )

    def may_reach(self, unit: Unit) -> bool:
        known = self._may.get(id(unit))
        if known is not None:
            return known
        self._may[id(unit)] = False
        self._may[id(unit)] = found = any(self.may_make(call) for call in unit.calls)
        return found

    @cached_property
    def _wraps(self) -> bool:
        """Whether anything is wrapped by DDP at all."""
        return any(
            ROLES.get(name) == "ddp"
            for call, _ in self.facts.calls
            for name in self.facts.names(call)
        )

    def _may_be(self, call: nodes.Call) -> bool:
        known = self._may_calls.get(id(call))
        if known is None:
            known = self._may_calls[id(call)] = self._looks_like_one(call)
        return known

    def _looks_like_one(self, call: nodes.Call) -> bool:
        if self.facts.names(call) & COLLECTIVES or self.direct(call) is not None:
            return True
        if not self._wraps:
            return False
        func = call.func
        return isinstance(func, nodes.Name | nodes.Attribute) and any(
            kind(self.facts, origin) == "ddp" for origin in self.facts.origins(func)
        )
