"""Subject: what makes the host wait for the device, or for the other ranks, on every step."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from astroid import nodes

from ddp_lint.finding import Related
from ddp_lint.model.facts import Facts, Spot
from ddp_lint.model.flow import reaching
from ddp_lint.model.origins import Api, Made
from ddp_lint.model.steps import Happening, StepLoop
from ddp_lint.model.torch_api import BARRIERS, EMPTY_CACHE, SYNCHRONIZE
from ddp_lint.model.tree import Node, dotted, is_within, source, walk
from ddp_lint.model.values import argument_for

_READS = frozenset({"item", "cpu", "tolist", "numpy"})
_CONVERSIONS = frozenset({"builtins.float", "builtins.int", "builtins.bool"})
_TESTS = frozenset({"math.isfinite", "math.isnan", "math.isinf", "numpy.isnan", "numpy.isfinite",
                    "numpy.isinf"})  # fmt: skip
_DEBUGGING = re.compile(r"debug|verbose|profil|benchmark|timing|time_|trace|wall_?clock|breakdown", re.I)


@dataclass(frozen=True)
class StepSpot(Spot):
    """Something that one iteration of a step loop does."""

    loop: StepLoop
    happening: Happening

    @property
    def chain(self) -> tuple[Related, ...]:
        return self.facts.chain(self.loop, self.happening)

    @property
    def on_every_step(self) -> bool:
        """On each iteration, or on each one while a setting that is not for debugging is on."""
        often = self.facts.how_often(self.loop, self.happening)
        return often == "every step" or (often == "on a flag" and not self.for_debugging)

    @property
    def always(self) -> bool:
        """On each iteration, whatever the settings."""
        return self.facts.how_often(self.loop, self.happening) == "every step"

    @property
    def for_debugging(self) -> bool:
        return any(
            _DEBUGGING.search(source(condition.test))
            for condition, _ in self.loop.conditions_of(self.happening)
        )


@dataclass(frozen=True)
class HostRead(StepSpot):
    """The value of a device tensor is taken to the host: ``value`` by ``how``."""

    value: Node
    how: str

    @property
    def value_text(self) -> str:
        return source(self.value)


@dataclass(frozen=True)
class Branch(StepSpot):
    """Python decides on the value of a device tensor."""

    test: Node

    @property
    def test_text(self) -> str:
        return source(self.test)


def _spots(facts: Facts) -> Iterator[tuple[StepLoop, Happening]]:
    for loop in facts.steps.loops:
        for happening in loop.happenings:
            yield loop, happening


def host_reads(facts: Facts) -> Iterator[HostRead]:
    """Every read of a device value by the host in one iteration of a step loop."""
    for loop, happening in _spots(facts):
        node = happening.node
        if isinstance(node, nodes.Call):
            yield from _read_by_call(facts, loop, happening, node)
        elif isinstance(node, nodes.FormattedValue):
            if _device_here(facts, node.value, happening):
                yield HostRead(facts, node.value, loop, happening, node.value, "formatting")
        elif isinstance(node, nodes.BinOp) and node.op == "%" and isinstance(node.left, nodes.Const):
            if isinstance(node.left.value, str):
                right = node.right
                for value in right.elts if isinstance(right, nodes.Tuple) else [right]:
                    if _device_here(facts, value, happening):
                        yield HostRead(facts, value, loop, happening, value, "formatting")


def _read_by_call(
    facts: Facts, loop: StepLoop, happening: Happening, node: nodes.Call
) -> Iterator[HostRead]:
    func = node.func
    if isinstance(func, nodes.Attribute) and func.attrname in _READS and not node.args:
        loose = func.attrname == "item"
        if _device_here(facts, func.expr, happening, loose=loose):
            yield HostRead(facts, node, loop, happening, func.expr, f".{func.attrname}()")
        return
    names = facts.names(node)
    if names & _CONVERSIONS and len(node.args) == 1:
        if _device_here(facts, node.args[0], happening):
            yield HostRead(facts, node, loop, happening, node.args[0], f"{dotted(func)}()")
    elif "builtins.print" in names:
        for value in node.args:
            if _device_here(facts, value, happening):
                yield HostRead(facts, node, loop, happening, value, "print()")
                return
    elif isinstance(func, nodes.Attribute) and func.attrname == "format":
        if isinstance(func.expr, nodes.Const):
            for value in [*node.args, *(k.value for k in node.keywords)]:
                if _device_here(facts, value, happening):
                    yield HostRead(facts, value, loop, happening, value, "formatting")
    elif isinstance(func, nodes.Attribute) and func.attrname == "add_scalar" and len(node.args) > 1:
        if _device_here(facts, node.args[1], happening):
            yield HostRead(facts, node, loop, happening, node.args[1], "add_scalar()")


def branches(facts: Facts) -> Iterator[Branch]:
    """Every decision of Python on a device value in one iteration of a step loop."""
    for loop, happening in _spots(facts):
        node = happening.node
        if isinstance(node, nodes.If | nodes.IfExp | nodes.Assert):
            for test in _parts(node.test):
                if _device_here(facts, test, happening):
                    yield Branch(facts, node.test, loop, happening, test)
                    break
        elif isinstance(node, nodes.While) and node is not loop.node:
            if _device_here(facts, node.test, happening):
                yield Branch(facts, node.test, loop, happening, node.test)
        elif isinstance(node, nodes.Call) and facts.names(node) & _TESTS and node.args:
            if _device_here(facts, node.args[0], happening):
                yield Branch(facts, node, loop, happening, node)


def _parts(test: Node) -> Iterator[Node]:
    if isinstance(test, nodes.BoolOp):
        for value in test.values:
            yield from _parts(value)
    elif isinstance(test, nodes.UnaryOp) and test.op == "not":
        yield from _parts(test.operand)
    else:
        yield test


def _device_here(facts: Facts, value: Node, happening: Happening, loose: bool = False) -> bool:
    """Whether ``value`` is on the device on *this* way to it.

    A helper may be handed a tensor by one caller and a number by another; what counts is what
    the calls of this chain pass.
    """
    tensors = facts.tensors
    if not (tensors.made_from_device(value) if loose else tensors.on_device(value)):
        return False
    return _passed_device(facts, value, happening, len(happening.chain))


def _passed_device(facts: Facts, value: Node, happening: Happening, level: int) -> bool:
    if level == 0:
        return True
    call, _ = happening.chain[level - 1]
    unit = facts.values.unit_of(value)
    parameters = []
    for name in walk(value):
        if isinstance(name, nodes.Name) and name.name in unit.bindings:
            found = reaching(unit, name.name, name)
            parameters.extend(b.name for b in found if b.path == ("param",))
            if not all(b.path == ("param",) for b in found):
                parameters.extend(_through_items(unit, found))
    if not parameters or not unit.is_function:
        return True
    answers = []
    for name in parameters:
        if name == unit.self_name:
            continue
        if name in (unit.node.args.kwarg, unit.node.args.vararg):
            given = [*call.args, *(k.value for k in call.keywords)]
        else:
            one = argument_for(call, unit, name)
            given = [one] if one is not None else []
        if not given:
            return True
        answers.append(
            any(
                facts.tensors.where(g) != "host" and _passed_device(facts, g, happening, level - 1)
                for g in given
            )
        )
    return any(answers) or not answers


def _through_items(unit: object, found: list) -> Iterator[str]:  # type: ignore[type-arg]
    """``for k, v in kwargs.items()``: the parameter that ``v`` comes out of."""
    for binding in found:
        value = binding.value
        if binding.path[:1] == ("iter",) and isinstance(value, nodes.Call):
            receiver = getattr(value.func, "expr", None)
            if isinstance(receiver, nodes.Name):
                for outer in getattr(unit, "bindings").get(receiver.name, ()):
                    if outer.path == ("param",):
                        yield outer.name


def waits(facts: Facts) -> Iterator[StepSpot]:
    """``torch.cuda.synchronize()`` and ``dist.barrier()`` in one iteration of a step loop."""
    for loop, happening in _spots(facts):
        node = happening.node
        if isinstance(node, nodes.Call):
            if facts.names(node) & (SYNCHRONIZE | BARRIERS):
                yield StepSpot(facts, node, loop, happening)
            elif isinstance(node.func, nodes.Attribute) and node.func.attrname in (
                "wait_for_everyone",
                "barrier",
            ):
                if facts.roles_of(node.func.expr) & {"accelerator", "fabric"}:
                    yield StepSpot(facts, node, loop, happening)


def cache_clears(facts: Facts) -> Iterator[StepSpot]:
    """``torch.cuda.empty_cache()`` in one iteration of a step loop."""
    for loop, happening in _spots(facts):
        if isinstance(happening.node, nodes.Call) and facts.names(happening.node) & EMPTY_CACHE:
            yield StepSpot(facts, happening.node, loop, happening)


__all__ = ["Api", "Branch", "HostRead", "Made", "StepSpot", "is_within"]
