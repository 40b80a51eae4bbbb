"""Subject: what a training step reads back from the device, and what else it does each time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from astroid import nodes

from ddp_lint.finding import Fix, Related
from ddp_lint.model.arms import evaluates, is_ruled_out
from ddp_lint.model.facts import Facts, Spot
from ddp_lint.model.flow import reaching
from ddp_lint.model.gates import is_switch
from ddp_lint.model.modules import Binding, Unit
from ddp_lint.model.needs import Need, need_of
from ddp_lint.model.of_batch import OfBatch
from ddp_lint.model.origins import Expression, Made
from ddp_lint.model.passing import argument_for
from ddp_lint.model.steps import Happening, StepLoop
from ddp_lint.model.testing import is_test_file
from ddp_lint.model.torch_api import EMPTY_CACHE
from ddp_lint.model.tree import (
    Node,
    dotted,
    elements,
    entries,
    is_within,
    source,
    statement,
    walk,
)
from ddp_lint.model.updates import updates_parameters
from ddp_lint.model.uses import acts, is_received, sized_by

#: Fewer steps than that are no training.
_BRIEF = 50
_READS = frozenset({"item", "cpu", "tolist", "numpy"})
_CONVERSIONS = frozenset({"builtins.float", "builtins.int", "builtins.bool", "builtins.str"})
_LOG_METHODS = frozenset({"info", "warning", "error", "critical", "warn"})
_LOGGER_NAMES = frozenset({"logger", "log", "logging", "_logger"})


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
        """On each iteration, or on each one while a setting is on that is not for debugging."""
        if not self.trains or self.ruled_out:
            return False
        often = self.facts.how_often(self.loop, self.happening)
        return often == "every step" or (often == "on a flag" and not self.switched_on)

    @property
    def at_every_update(self) -> bool:
        """On each iteration or each optimizer step, whatever the user chooses."""
        if not self.trains or self.ruled_out:
            return False
        often = self.facts.how_often(self.loop, self.happening)
        return often in ("every step", "each update") or (
            often == "on a flag" and self.only_environment
        )

    @property
    def ruled_out(self) -> bool:
        """In an arm that a training step does not take on this way, or in an evaluation."""
        return is_ruled_out(self.facts, self.loop, self.happening) or evaluates(
            self.facts, self.happening
        )

    @property
    def in_a_test(self) -> bool:
        """The loop is one of a unit test: it may wait as long as it likes."""
        return is_test_file(self.loop.unit.module)

    @property
    def switched_on(self) -> bool:
        """Only while somebody looks into the run: a debug or profile switch."""
        return any(
            is_switch(self.facts, condition.test, condition.holds)
            for condition, _ in self.loop.conditions_of(self.happening)
        )

    @property
    def only_environment(self) -> bool:
        """The conditions ask what the machine or the job is, not what the user wants."""
        return all(
            self.facts.kind_of_test(condition.test, self.loop) != "flag"
            or self.facts.asks_environment(condition.test)
            for condition, _ in self.loop.conditions_of(self.happening)
        )

    @property
    def trains(self) -> bool:
        """Whether the loop is a training that somebody waits for.

        Parameters are updated in it, or by the framework: a backward pass alone also makes a
        heat map.  A handful of steps that is no part of a longer run shows that it works.
        """
        return not self.in_a_test and self.updates and not self.is_brief

    @property
    def updates(self) -> bool:
        return updates_parameters(self.facts, self.loop)

    @property
    def is_brief(self) -> bool:
        """``for step in range(10)``, once."""
        loop = self.loop.node
        if not isinstance(loop, nodes.For) or not isinstance(loop.iter, nodes.Call):
            return False
        called = loop.iter
        if dotted(called.func) != "range" or len(called.args) != 1 or self.loop.outer_loops:
            return False
        steps = {
            origin.node.value
            if isinstance(origin, Expression) and isinstance(origin.node, nodes.Const)
            else None
            for origin in self.facts.values.of(called.args[0])
        }
        return len(steps) == 1 and all(isinstance(n, int) and n < _BRIEF for n in steps)

    @property
    def removal(self) -> Fix | None:
        """Delete the statement, where the call is all of it and nobody else comes by."""
        if self.happening.chain and len(self.facts.graph.sites_of(self.happening.unit)) > 1:
            return None
        edit = self.facts.delete(self.node)
        return None if edit is None else Fix(f"Remove `{self.text}`", (edit,), safe=False)


S = TypeVar("S", bound=StepSpot)


@dataclass(frozen=True)
class HostRead(StepSpot):
    """The value of a device tensor is taken to the host: ``value`` by ``how``."""

    value: Node
    how: str

    @property
    def value_text(self) -> str:
        return source(self.value)

    @property
    def cannot_wait(self) -> bool:
        """Whether the step cannot go on without the number, and nobody has it earlier."""
        return (
            self.ends_the_loop
            or acts(self.facts, self.happening)
            or (is_received(self.facts, self.value) if self.sizes else self.is_tied_to_the_host)
        )

    @property
    def is_tied_to_the_host(self) -> bool:
        """Whether it decides if the run goes on, or an algorithm of the host works on it whose
        answer the step needs."""
        return self.need in ("end", "host")

    @cached_property
    def need(self) -> Need:
        """What the step needs the value for."""
        if not self.is_taken:
            return "look"
        return need_of(self.facts, self.loop, self.happening, self.is_array)

    @property
    def counts(self) -> bool:
        """Whether the value is a counter, of which a number of Python would say as much."""
        return self.facts.tensors.counted.counts(self.value)

    @property
    def is_taken(self) -> bool:
        """Whether the read gives a value of the host, rather than a text or a log line."""
        return self.is_array or self.how in (".item()", "float()", "int()", "bool()")

    @property
    def is_array(self) -> bool:
        return self.how in (".cpu()", ".tolist()", ".numpy()", '.to("cpu")')

    @property
    def ends_the_loop(self) -> bool:
        """Whether the loop goes on until this number says that it is enough."""
        loop = self.loop.node
        if not isinstance(loop, nodes.While):
            return False
        top = self.happening.top
        if is_within(top, loop.test):
            return True
        at = statement(top)
        targets = at.targets if isinstance(at, nodes.Assign) else [getattr(at, "target", None)]
        kept = {
            dotted(part)
            for target in targets
            if target is not None
            for part in walk(target)
            if isinstance(part, nodes.AssignName | nodes.AssignAttr)
        }
        return any(dotted(part) in kept for part in walk(loop.test))

    @cached_property
    def sizes(self) -> str:
        """What needs the number on the host as a size: ``torch.arange``."""
        return sized_by(self.facts, self.happening, self.is_of_batch)

    @cached_property
    def is_of_batch(self) -> bool:
        """Whether the host could compute it before the batch is moved."""
        return OfBatch(self.facts, self.loop).holds(self.value, self.happening.chain)


def spots(facts: Facts) -> Iterator[tuple[StepLoop, Happening]]:
    """Everything that one iteration of a step loop runs."""
    for loop in step_loops(facts):
        for happening in loop.happenings:
            yield loop, happening


def step_loops(facts: Facts) -> list[StepLoop]:
    return [*facts.steps.loops, *facts.steps.windows]


def host_reads(facts: Facts) -> Iterator[HostRead]:
    """Reads of device values by the host in one iteration of a step loop, one a statement."""
    return one_a_statement(
        read
        for loop in step_loops(facts)
        for read in reads_in(facts, loop)
        if read.on_every_step and not read.cannot_wait
    )


def one_a_statement(found: Iterable[S]) -> Iterator[S]:
    """The first of those that stand in one statement and are reached by as many calls."""
    seen: set[tuple[int, int, int]] = set()
    for one in found:
        key = id(one.loop), id(statement(one.node)), len(one.happening.chain)
        if key not in seen:
            seen.add(key)
            yield one


def reads_in(facts: Facts, loop: StepLoop) -> Iterator[HostRead]:
    """All reads of device values by the host in one iteration of a step loop."""
    for happening in loop.happenings:
        for node, value, how in _read_at(facts, happening):
            loose = how == ".item()"
            if is_on_device(facts, value, happening, loose):
                yield HostRead(facts, node, loop, happening, value, how)


def _read_at(facts: Facts, happening: Happening) -> Iterator[tuple[Node, Node, str]]:
    """What would be read where, if the value is on the device: (place, value, how)."""
    node = happening.node
    if isinstance(node, nodes.FormattedValue):
        yield node.value, node.value, "formatting"
    elif isinstance(node, nodes.BinOp) and node.op == "%":
        if isinstance(node.left, nodes.Const) and isinstance(node.left.value, str):
            right = node.right
            for value in elements(right) if isinstance(right, nodes.Tuple) else [right]:
                yield value, value, "formatting"
    elif isinstance(node, nodes.Call):
        yield from _read_by_call(facts, node)


def _read_by_call(facts: Facts, node: nodes.Call) -> Iterator[tuple[Node, Node, str]]:
    func, names = node.func, facts.names(node)
    every = [*node.args, *(k.value for k in node.keywords)]
    if names & _CONVERSIONS and len(node.args) == 1:
        yield node, node.args[0], f"{dotted(func)}()"
    elif "builtins.print" in names:
        yield from ((node, value, "print()") for value in node.args)
    elif "wandb.log" in names:
        yield from _of_dict(node, "wandb.log()")
    if not isinstance(func, nodes.Attribute):
        return
    name = func.attrname
    if name in _READS and not node.args:
        yield node, func.expr, f".{name}()"
    elif name == "to" and node.args and getattr(node.args[0], "value", None) == "cpu":
        if not any(k.arg == "non_blocking" for k in node.keywords):
            yield node, func.expr, '.to("cpu")'
    elif name == "format" and isinstance(func.expr, nodes.Const):
        yield from ((value, value, "formatting") for value in every)
    elif name == "add_scalar" and len(node.args) > 1:
        yield node, node.args[1], "add_scalar()"
    elif name == "set_postfix":
        yield from ((value, value, "set_postfix()") for value in every)
    elif name == "log" and "accelerator" in facts.roles_of(func.expr):
        yield from _of_dict(node, "accelerator.log()")
    elif name in _LOG_METHODS and _is_logger(facts, func.expr):
        yield from ((node, value, "logging") for value in node.args)


def _of_dict(node: nodes.Call, how: str) -> Iterator[tuple[Node, Node, str]]:
    for argument in node.args[:1]:
        if isinstance(argument, nodes.Dict):
            yield from ((value, value, how) for _, value in entries(argument))


def _is_logger(facts: Facts, node: Node) -> bool:
    if dotted(node).rpartition(".")[2] in _LOGGER_NAMES:
        return True
    return any(isinstance(o, Made) and "getLogger" in o.name for o in facts.origins(node))


def is_on_device(facts: Facts, value: Node, happening: Happening, loose: bool = False) -> bool:
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
    if not unit.is_function:
        return True
    answers = []
    kept = {name for node in walk(value) for name in _kept_in(node, unit)}
    for name in sorted((kept | _parameters_in(value, unit)) - {unit.self_name or ""}):
        if name in (unit.arguments.kwarg, unit.arguments.vararg):
            given = [*call.args, *(k.value for k in call.keywords)]
        else:
            one = argument_for(call, unit, name)
            given = [] if one is None else [one]
        if not given:
            return True
        if name in kept:
            # What a meter keeps is a tensor for one of its callers: is it for this one?
            answers.append(any(facts.tensors.on_device(g) for g in given))
            continue
        answers.append(
            any(
                facts.tensors.where(g) != "host" and _passed_device(facts, g, happening, level - 1)
                for g in given
            )
        )
    return any(answers) or not answers


def _parameters_in(value: Node, unit: Unit) -> set[str]:
    """The parameters of ``unit`` that ``value`` is made of and of nothing else."""
    found: set[str] = set()
    for name in walk(value):
        if isinstance(name, nodes.Name) and name.name in unit.bindings:
            bindings = reaching(unit, name.name, name)
            found.update(b.name for b in bindings if b.path == ("param",))
            found.update(_unpacked(unit, bindings))
    return found


def _kept_in(node: Node, unit: Unit) -> Iterator[str]:
    """``self.last``, where this very method keeps a parameter there: the parameter."""
    if unit.owner is None or dotted(getattr(node, "expr", node)) != unit.self_name:
        return
    for at, binding in unit.owner.attributes.get(getattr(node, "attrname", ""), ()):
        if at is unit and binding.value is not None and not binding.path:
            for part in walk(binding.value):
                if isinstance(part, nodes.Name) and part.name in unit.parameters:
                    yield part.name


def _unpacked(unit: Unit, bindings: list[Binding]) -> Iterator[str]:
    """``for k, v in kwargs.items()``: the parameter that ``v`` comes out of."""
    for binding in bindings:
        value = binding.value
        if binding.path[:1] == ("iter",) and isinstance(value, nodes.Call):
            receiver = getattr(value.func, "expr", None)
            if isinstance(receiver, nodes.Name):
                for outer in unit.bindings.get(receiver.name, ()):
                    if outer.path == ("param",):
                        yield outer.name


def cache_clears(facts: Facts) -> Iterator[StepSpot]:
    """``torch.cuda.empty_cache()`` in one iteration of a step loop."""
    for loop, happening in spots(facts):
        if isinstance(happening.node, nodes.Call) and facts.names(happening.node) & EMPTY_CACHE:
            yield StepSpot(facts, happening.node, loop, happening)
