"""Layer 7, to the device: whether a program may put anything on one at all."""

from __future__ import annotations

import re
from collections import defaultdict

from astroid import nodes

from ddp_lint.model.calls import CallGraph
from ddp_lint.model.flow import Condition, parts_of
from ddp_lint.model.modules import Module, Unit
from ddp_lint.model.origins import (
    Api,
    Expression,
    Instance,
    Item,
    Made,
    Member,
    Origin,
    Param,
    Result,
    inner,
)
from ddp_lint.model.steps import Steps
from ddp_lint.model.tree import Node, dotted, elements

_MOVING = frozenset(
    {"cuda", "to", "prepare", "setup", "npu", "xpu", "set_device", "fit", "train_batch"}
)
_MOVERS = frozenset(
    {"torch.cuda.set_device", "torch.set_default_device", "torch.set_default_tensor_type",
     "deepspeed.initialize", "torch.nn.DataParallel", "torch.accelerator.set_device_index",
     "accelerate.Accelerator", "lightning.Fabric", "lightning.fabric.Fabric"}
)  # fmt: skip
_DEEPEST = 5
#: Devices for which a training program has ways around, and the one without a queue.
_OTHER_DEVICES = frozenset({"mps", "cpu"})
_DTYPES = frozenset(
    {"float16", "float32", "float64", "bfloat16", "float", "half", "double", "int8", "int16",
     "int32", "int64", "uint8", "short", "int", "long", "bool", "complex64"}
)  # fmt: skip
#: Bases whose methods nobody but the program itself calls.
_QUIET_BASES = frozenset(
    {"torch.nn.Module", "torch.nn.modules.module.Module", "torch.utils.data.Dataset", "abc.ABC",
     "builtins.object", "typing.Generic", "typing.Protocol", "typing.NamedTuple"}
)  # fmt: skip
#: Libraries whose tensors have methods of the same names.
_OTHER_LIBRARIES = frozenset(
    {"paddle", "jax", "mindspore", "oneflow", "tensorflow", "mxnet", "jittor", "tinygrad",
     "chainer"}
)  # fmt: skip


def anything_moves(graph: CallGraph, steps: Steps) -> bool:
    """Whether the program may put anything on a device at all.

    Only a program that is started as it is shows everything that is moved; what a library's
    caller does is unknown, and then the answer is yes.
    """
    if all(is_of_another_library(root) for root in graph.roots):
        return False
    if any(loop.is_hook for loop in steps.loops):
        return True  # the framework moves it
    started = {id(unit) for unit in _reached_from([root.body for root in graph.roots], graph)}
    is_whole = any(id(loop.unit) in started for loop in steps.loops)
    if not is_whole and not all(root.is_script for root in graph.roots):
        return True
    return _Placing(graph).anything


def is_of_another_library(module: Module) -> bool:
    """Whether a file computes with the tensors of another library than PyTorch."""
    packages = {found.module.partition(".")[0] for found in module.imports.values()}
    return bool(packages & _OTHER_LIBRARIES) and "torch" not in packages


def asks_for_another_device(graph: CallGraph, condition: Condition) -> bool:
    """Whether something runs only where training is not meant to: ``x.device.type == "mps"``,
    as a way around what is missing there, or on the CPU, where nothing waits."""
    for test, holds in parts_of(condition.test, condition.holds):
        written = [test] if isinstance(test, nodes.Compare) else [
            o.node for o in graph.values.of(test) if isinstance(o, Expression)
        ]  # fmt: skip
        if written and all(_is_another(one, holds) for one in written):
            return True
    return False


def _is_another(test: Node, holds: bool) -> bool:
    if not isinstance(test, nodes.Compare) or len(test.ops) != 1:
        return False
    op, right = test.ops[0]
    asked = elements(right) if isinstance(right, nodes.Tuple | nodes.List) else [right]
    return (
        op in (("==", "in") if holds else ("!=", "not in"))
        and bool(re.search(r"device|\.type\b", test.left.as_string()))
        and all(getattr(one, "value", None) in _OTHER_DEVICES for one in asked)
    )


# -- what runs ------------------------------------------------------------------------------------


def _units_run(graph: CallGraph) -> list[Unit]:
    """What the program may run: all of the files that start it, who may be asked for any part
    of theirs, and of the others what is called from there."""
    roots = {root.key for root in graph.roots}
    first = [
        unit
        for unit in graph.units
        if unit.module.key in roots or not unit.is_function or _is_called_unseen(graph, unit)
    ]
    return _reached_from(first, graph)


def _is_called_unseen(graph: CallGraph, unit: Unit) -> bool:
    """Methods that are called without a call: by an operator, by a framework."""
    if unit.owner is None:
        return False
    if unit.name == "forward" or unit.name.startswith("__") or unit.decorators:
        return True
    return not graph.values.external_bases(unit.owner) <= _QUIET_BASES


def _reached_from(first: list[Unit], graph: CallGraph) -> list[Unit]:
    by_call: dict[int, list[Unit]] = defaultdict(list)
    by_name: dict[str, list[Unit]] = defaultdict(list)
    for unit in graph.units:
        for site in graph.sites_of(unit):
            by_call[id(site.call)].append(unit)
        if unit.owner is not None:
            by_name[unit.name].append(unit)
    found = {id(unit): unit for unit in first}
    todo = list(found.values())
    while todo:
        unit = todo.pop()
        next_ones = list(unit.inside) if unit.is_function else []
        for call in unit.calls:
            called = by_call.get(id(call))
            if called is None and isinstance(call.func, nodes.Attribute):
                called = by_name.get(call.func.attrname)  # of what, nobody can tell
            next_ones.extend(called or ())
        for one in next_ones:
            if id(one) not in found:
                found[id(one)] = one
                todo.append(one)
    return list(found.values())


# -- what moves -----------------------------------------------------------------------------------


class _Placing:
    """What the program places, in all that it runs."""

    def __init__(self, graph: CallGraph) -> None:
        self.graph = graph
        self.run = {id(unit): unit for unit in _units_run(graph)}

    @property
    def anything(self) -> bool:
        return any(self._places(call) for unit in self.run.values() for call in unit.calls)

    def _places(self, call: nodes.Call) -> bool:
        name = getattr(call.func, "attrname", "")
        if name == "add_argument" and any(_is_option_of_device(option) for option in call.args):
            return True  # the device comes from the command line
        named = [k.value for k in call.keywords if k.arg == "device"]
        if name == "to" or named:
            return any(not self._stays(target, 0) for target in named or call.args[:1])
        if any(k.arg in ("device_ids", "device_map") for k in call.keywords):
            return True
        if name in _MOVING:
            return name == "cuda" or not self.graph.targets_of(call)
        return any(
            isinstance(o, Api) and o.name in _MOVERS for o in self.graph.values.of(call.func)
        )

    def _stays(self, target: Node, depth: int) -> bool:
        """Whether a target of ``.to`` is the CPU, no device (a dtype, another tensor), or where
        something else lies already."""
        if names_cpu(target) or names_dtype(target):
            return True
        origins = self.graph.values.of(target)
        return bool(origins) and all(self._is_no_new_device(o, depth) for o in origins)

    def _is_no_new_device(self, origin: Origin, depth: int) -> bool:
        match origin:
            case Api(name=name):
                return name.startswith("torch.")
            case Expression(node=node):
                return names_cpu(node) or (isinstance(node, nodes.Const) and node.value is None)
            case Made(name="torch.device", call=call) if call.args and not names_cpu(call):
                return self._stays(call.args[0], depth + 1)
            case Made(call=call) | Result(call=call) if names_cpu(call):
                return True
            case Param(unit=unit, name=name):
                return depth < _DEEPEST and self._is_passed_no_new_device(unit, name, depth)
            case Member(name="device", of=of) | Result(of=Member(name="device", of=of)):
                based = self.graph.expand(frozenset({of}))
                return not any(self._may_be_settings(list(inner(o))[-1]) for o in based)
            case Item(of=Param() as base):
                return self._is_no_new_device(base, depth)
        return False

    def _is_passed_no_new_device(self, unit: Unit, name: str, depth: int) -> bool:
        sites = [site for site in self.graph.sites_of(unit) if id(site.caller) in self.run]
        given = [self.graph.given(site, unit, name) for site in sites]
        if not given:  # who starts the program may pass one, and nobody to the rest of it
            return all(unit.module is not root for root in self.graph.roots)
        return all(one is not None and self._stays(one, depth + 1) for one in given)

    def _may_be_settings(self, origin: Origin) -> bool:
        """``args.device`` says where to go, ``images.device`` where something is."""
        match origin:
            case Param(unit=unit):
                return any(unit.module is root for root in self.graph.roots)
            case Made(name=name) | Api(name=name):
                return not name.startswith("torch.")
            case Instance(cls=cls):
                return not self.graph.values.external_bases(cls)
        return not isinstance(origin, Expression)


def _is_option_of_device(argument: Node) -> bool:
    text = getattr(argument, "value", None)
    return isinstance(text, str) and any(word in text for word in ("device", "cuda", "gpu"))


def names_dtype(node: Node) -> bool:
    """``torch.float16``, ``self.dtype``: what ``.to`` makes of a value, not where it goes."""
    last = dotted(node).rpartition(".")[2]
    return last in _DTYPES or last.endswith("dtype")


def names_cpu(node: Node) -> bool:
    """Whether an expression is the CPU, as it is written."""
    if isinstance(node, nodes.Const):
        return bool(node.value == "cpu")
    if not isinstance(node, nodes.Call):
        return False
    if dotted(node.func).endswith(".cpu") and not node.args:
        return True
    return (
        dotted(node.func) == "torch.device"
        and bool(node.args)
        and isinstance(node.args[0], nodes.Const)
        and bool(node.args[0].value == "cpu")
    )
