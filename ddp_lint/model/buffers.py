"""Layer 9, buffers: whether a wrapped model sends something in its forward pass.

``DistributedDataParallel`` broadcasts the buffers of its model (the running means of batch norm)
before a forward pass, also without gradients.  Without buffers it sends nothing there.
"""

from __future__ import annotations

from collections.abc import Iterator

from astroid import nodes

from ddp_lint.model.facts import Facts
from ddp_lint.model.flow import conditions
from ddp_lint.model.modules import Unit
from ddp_lint.model.origins import Instance, Made
from ddp_lint.model.tree import Node

_NORMS = tuple(f"torch.nn.{name}" for name in ("BatchNorm", "SyncBatchNorm", "LazyBatchNorm"))
#: Models of torchvision whose layers have batch norm, whatever they are told.
_NORMED = ("resnet", "resnext", "wide_resnet", "densenet", "mobilenet", "mnasnet",
           "efficientnet_b", "shufflenet", "googlenet", "inception", "regnet")  # fmt: skip
_DEEPEST = 6


def has_buffers(facts: Facts, model: Node | None, depth: int = 0) -> bool:
    """Whether the model certainly has buffers, by what its constructor builds."""
    if depth > _DEEPEST:
        return False
    origins = facts.origins(model)
    return bool(origins) and all(_has(facts, origin, depth) for origin in origins)


def _has(facts: Facts, origin: object, depth: int) -> bool:
    if isinstance(origin, Made):
        if origin.name.startswith(_NORMS):
            return not _is_told_not_to(origin.call)
        if origin.name.startswith("torchvision.models."):
            return origin.name.rpartition(".")[2].lower().startswith(_NORMED)
        if origin.name in ("torch.nn.Sequential", "torch.nn.ModuleList"):
            return any(has_buffers(facts, given, depth + 1) for given in origin.call.args)
        return False
    if isinstance(origin, Instance):
        for cls in facts.values.mro(origin.cls):
            unit = cls.methods.get("__init__")
            if unit is not None and _builds(facts, unit, depth, set()):
                return True
    return False


def _builds(facts: Facts, unit: Unit, depth: int, seen: set[int]) -> bool:
    if id(unit) in seen or depth > _DEEPEST:
        return False
    seen.add(id(unit))
    return any(_builds_by(facts, call, depth, seen) for call in unit.calls if not conditions(call))


def _builds_by(facts: Facts, call: nodes.Call, depth: int, seen: set[int]) -> bool:
    names = facts.names(call)
    if any(name.startswith(_NORMS) for name in names):
        return not _is_told_not_to(call)
    if isinstance(call.func, nodes.Attribute) and call.func.attrname == "register_buffer":
        return True
    if any(name.startswith("torchvision.models.") for name in names):
        return has_buffers(facts, call, depth + 1)
    return any(
        _builds(facts, target, depth + 1, seen)
        for target in facts.graph.targets_of(call)
        if target.name not in ("forward", "__call__")
    )


def _is_told_not_to(call: nodes.Call) -> bool:
    return any(
        k.arg == "track_running_stats" and isinstance(k.value, nodes.Const) and not k.value.value
        for k in call.keywords
    )


def broadcasts(facts: Facts, wrapping: nodes.Call) -> bool:
    """Whether a DDP wrapper, by its constructor call, sends buffers in its forward."""
    for keyword in wrapping.keywords:
        if keyword.arg == "broadcast_buffers":
            return isinstance(keyword.value, nodes.Const) and bool(keyword.value.value)
        if keyword.arg is None:
            return False
    return has_buffers(facts, next(_wrapped(wrapping), None))


def _wrapped(call: nodes.Call) -> Iterator[Node]:
    yield from call.args[:1]
    yield from (k.value for k in call.keywords if k.arg == "module")
