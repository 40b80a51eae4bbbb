"""Layer 11, wrapping: how models are wrapped, and in which order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from astroid import nodes

from ddp_lint.finding import Related
from ddp_lint.model.facts import Facts, Spot
from ddp_lint.model.flow import conditions
from ddp_lint.model.modules import Class, Unit
from ddp_lint.model.origins import Instance, Made, Origin, Type
from ddp_lint.model.roles import role_of_name
from ddp_lint.model.story import Event, Story
from ddp_lint.model.torch_api import ROLES
from ddp_lint.model.tree import COMPREHENSIONS, Node, ancestors, source, walk
from ddp_lint.model.wrappers import is_certain

_CONVERT = frozenset(
    {"torch.nn.SyncBatchNorm.convert_sync_batchnorm", "torch.nn.modules.batchnorm.SyncBatchNorm."
     "convert_sync_batchnorm"}
)  # fmt: skip
#: Methods of a module that give its parameters.
_HANDING_OUT = frozenset({"parameters", "named_parameters"})


@dataclass(frozen=True)
class UnusedSearch(Spot):
    """``find_unused_parameters=True`` as DDP is told it."""

    wrapping: nodes.Call


def unused_searches(facts: Facts) -> Iterator[UnusedSearch]:
    """Wrappers that always search, of models whose parts are not seen to be left out."""
    for call, _ in facts.calls:
        if not any(ROLES.get(name) == "ddp" for name in facts.names(call)):
            continue
        for keyword in call.keywords:
            if keyword.arg != "find_unused_parameters":
                continue
            if isinstance(keyword.value, nodes.Const) and keyword.value.value is True:
                model = next(iter(call.args), None)
                if not _leaves_parts_out(facts, model):
                    yield UnusedSearch(facts, keyword.value, call)


def _leaves_parts_out(facts: Facts, model: Node | None) -> bool:
    """Whether the forward pass of a model of the project chooses among its parts."""
    return any(
        isinstance(origin, Instance) and _chooses(facts, origin.cls, set())
        for origin in facts.origins(model)
    )


def _chooses(facts: Facts, cls: Class, seen: set[int]) -> bool:
    if id(cls) in seen:
        return False
    seen.add(id(cls))
    for at in facts.values.mro(cls):
        for unit in at.methods.values():
            if unit.name == "forward" and _branches(unit):
                return True
            if unit.name == "__init__":
                for call in unit.calls:
                    for origin in facts.values.of(call.func):
                        if isinstance(origin, Type) and _chooses(facts, origin.cls, seen):
                            return True
    return False


def _branches(unit: Unit) -> bool:
    """Whether calls of the function's own parts stand under conditions."""
    own = unit.self_name
    for call in unit.calls:
        if not any(isinstance(n, nodes.Name) and n.name == own for n in walk(call.func)):
            continue
        if conditions(call) or any(isinstance(p, COMPREHENSIONS) for _, p in ancestors(call)):
            return True
    return any(
        isinstance(node, nodes.If)
        and any(isinstance(inner, nodes.Name) and inner.name == own for inner in walk(node))
        for statement in unit.statements
        for node in walk(statement)
    )


# -- in the wrong order -----------------------------------------------------------------------


@dataclass(frozen=True)
class WrappedEarly(Spot):
    """An optimizer built before its parameters were replaced, or layers after wrapping."""

    wrap: nodes.Call
    name: str
    is_optimizer: bool

    @property
    def wrap_text(self) -> str:
        return source(self.wrap.func)

    @property
    def places(self) -> tuple[Related, ...]:
        says = "the parameters are replaced here" if self.is_optimizer else "it is wrapped here"
        return (self.facts.related(self.wrap, says),)


def wrapped_early(facts: Facts) -> Iterator[WrappedEarly]:
    yield from _converted_late(facts)
    shards = (name for call, _ in facts.calls for name in facts.names(call))
    if not any(ROLES.get(name) == "fsdp" for name in shards):
        return
    seen: set[int] = set()
    for telling in facts.once(Story).tellings:
        for found in _optimizers_too_early(facts, telling):
            if id(found.node) not in seen:
                seen.add(id(found.node))
                yield found


def _converted_late(facts: Facts) -> Iterator[WrappedEarly]:
    for call, _ in facts.calls_to(_CONVERT):
        model = next(iter(call.args), None)
        if model is None or not is_certain(facts, model, frozenset({"ddp"})):
            continue
        for origin in facts.origins(model):
            if isinstance(origin, Made):
                yield WrappedEarly(facts, call, origin.call, source(model), is_optimizer=False)
                break


def _optimizers_too_early(facts: Facts, telling: list[Event]) -> Iterator[WrappedEarly]:
    built: list[tuple[Event, frozenset[Origin]]] = []
    for event in telling:
        names = facts.names(event.call)
        if any(role_of_name(name) == "optimizer" for name in names):
            built.append((event, _models_of(facts, event.call)))
        elif any(ROLES.get(name) == "fsdp" for name in names) and event.call.args:
            if _keeps_parameters(event.call):
                continue
            wrapped = facts.origins(event.call.args[0])
            stale = [(e, models) for e, models in built if models & wrapped]
            later = [
                _models_of(facts, other.call)
                for other in telling[event.number + 1 :]
                if any(role_of_name(n) == "optimizer" for n in facts.names(other.call))
            ]
            again = any(
                models & wrapped or any(_wraps(o, event.call) for o in models) for models in later
            )
            for old, _ in stale if not again else ():
                yield WrappedEarly(
                    facts, old.call, event.call, _bound_name(old.call), is_optimizer=True
                )


def _wraps(origin: Origin, call: nodes.Call) -> bool:
    return isinstance(origin, Made) and origin.call is call


def _keeps_parameters(call: nodes.Call) -> bool:
    """Whether it may shard the parameters where they are; torch and fairscale have a word each."""
    for keyword in call.keywords:
        value = keyword.value.value if isinstance(keyword.value, nodes.Const) else None
        if keyword.arg == "use_orig_params":
            return value is not False
        if keyword.arg == "flatten_parameters":
            return value is not True
        if keyword.arg is None:
            return True
    return False


def _models_of(facts: Facts, call: nodes.Call) -> frozenset[Origin]:
    """The models whose parameters an optimizer is given, certainly made before it."""
    found: set[Origin] = set()
    for argument in [*call.args[:1], *(k.value for k in call.keywords if k.arg == "params")]:
        for node in walk(argument):
            func = node.func if isinstance(node, nodes.Call) else None
            if isinstance(func, nodes.Attribute) and func.attrname in _HANDING_OUT:
                origins = facts.origins(func.expr)
                if all(isinstance(o, Made | Instance) for o in origins):
                    found.update(o for o in origins if getattr(o, "call", None) is not None)
    return frozenset(found)


def _bound_name(call: nodes.Call) -> str:
    parent = call.parent
    if isinstance(parent, nodes.Assign):
        return str(parent.targets[0].as_string())
    return "the optimizer"
