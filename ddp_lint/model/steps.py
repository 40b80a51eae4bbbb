"""Layer 6, steps: the loops that train, and everything that one iteration of them runs.

A step loop is known by what it does: a backward pass is reached from it, directly or through
calls.  A ``Step`` is one iteration laid out as a list of happenings in the order they run,
calls entered, each with the calls that lead there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from astroid import nodes

from ddp_lint.model.calls import CallGraph
from ddp_lint.model.flow import Condition, conditions, loops_around
from ddp_lint.model.guards import Guards
from ddp_lint.model.modules import Unit
from ddp_lint.model.origins import Api, Instance, Made
from ddp_lint.model.torch_api import STEP_CALLERS
from ddp_lint.model.tree import COMPREHENSIONS, SCOPES, Loop, Node, dotted, is_within, walk_scope

DEEPEST_CALL = 7
MOST_HAPPENINGS = 2500
MOST_VISITS = 3

#: What a framework hands such a method that lies on the device.
HOOK_TENSORS = frozenset({"batch", "outputs", "loss", "inputs", "output"})
#: Methods that a framework calls for every batch, by the base class of the object.
STEP_HOOKS: dict[str, frozenset[str]] = {
    "LightningModule": frozenset({"training_step", "on_train_batch_end", "on_train_batch_start",
                                  "on_before_optimizer_step", "on_after_backward"}),
    "Trainer": frozenset({"training_step", "compute_loss"}),
    "TrainerCallback": frozenset({"on_step_end", "on_step_begin", "on_substep_end",
                                  "on_pre_optimizer_step", "on_optimizer_step"}),
    "Callback": frozenset({"on_train_batch_end", "on_train_batch_start", "batch_end",
                           "batch_start", "after_loss", "after_backward", "after_train_iter",
                           "before_train_iter"}),
    "Hook": frozenset({"after_train_iter", "before_train_iter"}),
}  # fmt: skip
_HOOK_NAMES = frozenset().union(*STEP_HOOKS.values())
_HOOK_PACKAGES = (
    "lightning",
    "pytorch_lightning",
    "transformers",
    "composer",
    "mmengine",
    "mmcv",
    "trl",
)


@dataclass(frozen=True)
class Happening:
    """A node that one iteration runs, and the calls, outermost first, that lead to it."""

    node: Node
    unit: Unit
    chain: tuple[tuple[nodes.Call, Unit], ...] = ()

    @property
    def top(self) -> Node:
        """The node in the loop's own unit through which this happens."""
        return self.chain[0][0] if self.chain else self.node

    @property
    def call(self) -> nodes.Call:
        """The node, where it is a call."""
        assert isinstance(self.node, nodes.Call)
        return self.node


class Steps:
    """The step loops of one program."""

    def __init__(self, graph: CallGraph, guards: Guards) -> None:
        self.graph = graph
        self.guards = guards
        self._wrappers = graph.values.codebase.project.words.scaler_wrappers
        self._sequences: dict[int, list[Node]] = {}
        self._backward_units: dict[int, bool] = {}
        self._step_units: dict[int, bool] = {}
        self._calls: dict[int, list[nodes.Call]] = {}
        self._back_loops: dict[int, bool] = {}

    # -- what a unit runs, in order ---------------------------------------------------------

    def sequence(self, node: Node) -> list[Node]:
        """Everything directly under ``node`` in the order it is evaluated, arguments first."""
        known = self._sequences.get(id(node))
        if known is None:
            known = self._sequences[id(node)] = list(_in_order(node))
        return known

    def is_backward(self, call: nodes.Call) -> bool:
        """A call that starts a backward pass."""
        if self._calls_stepper(call):
            return True
        func = call.func
        if not isinstance(func, nodes.Attribute):
            return any(
                isinstance(o, Api) and o.name == "torch.autograd.backward"
                for o in self.graph.values.of(func)
            )
        if func.attrname == "manual_backward":
            return True
        if func.attrname != "backward":
            return False
        receiver = func.expr
        if isinstance(receiver, nodes.Call) and dotted(receiver.func) == "super":
            return False
        for origin in self.graph.origins(receiver):
            if isinstance(origin, Instance) and self.graph.targets_of(call):
                return False  # a method of the project, which is entered instead
            if isinstance(origin, Api) and origin.name != "torch.autograd":
                return False
        return True

    def reaches_backward(self, unit: Unit) -> bool:
        known = self._backward_units.get(id(unit))
        if known is not None:
            return known
        self._backward_units[id(unit)] = False
        found = any(
            self.is_backward(call)
            or any(self.reaches_backward(target) for target in self.graph.targets_of(call))
            for call in unit.calls
        )
        self._backward_units[id(unit)] = found
        return found

    @cached_property
    def has_steppers(self) -> bool:
        """Whether the program makes any object that does the whole update."""
        return any(
            self._makes_stepper(name)
            for unit in self.graph.units
            for call in unit.calls
            for name in self.graph.values.names_called(call)
        )

    def _makes_stepper(self, name: str) -> bool:
        """By the qualified name of a class outside the project."""
        return name in STEP_CALLERS or name.rpartition(".")[2] in self._wrappers

    def _calls_stepper(self, call: nodes.Call) -> bool:
        """``loss_scaler(loss, optimizer)``: an object that does the whole update."""
        if len(call.args) < 2 or not isinstance(call.func, nodes.Name | nodes.Attribute):
            return False
        return self.has_steppers and any(
            isinstance(o, Made) and self._makes_stepper(o.name)
            for o in self.graph.origins(call.func)
        )

    def is_optimizer_step(self, call: nodes.Call) -> bool:
        """``optimizer.step()``, ``scaler.step(optimizer)``, an engine's step."""
        if self._calls_stepper(call):
            return True
        func = call.func
        if not isinstance(func, nodes.Attribute) or func.attrname not in (
            "step",
            "optimizer_step",
        ):
            return False
        if self.graph.targets_of(call):
            return False  # a method of the project, which is entered instead
        name = dotted(func.expr).rpartition(".")[2].lower()
        return not any(
            word in name for word in ("sched", "prof", "env", "bar", "progress", "self")
        )

    def reaches_step(self, unit: Unit) -> bool:
        """Whether ``unit`` updates parameters, directly or through calls."""
        known = self._step_units.get(id(unit))
        if known is not None:
            return known
        self._step_units[id(unit)] = False
        found = self._is_step_of_optimizer(unit) or any(
            self.is_optimizer_step(call)
            or any(self.reaches_step(target) for target in self.graph.targets_of(call))
            for call in unit.calls
        )
        self._step_units[id(unit)] = found
        return found

    def _is_step_of_optimizer(self, unit: Unit) -> bool:
        """The ``step`` of an optimizer of the project's own."""
        return (
            unit.name == "step"
            and unit.owner is not None
            and any(b.endswith("Optimizer") for b in self.graph.values.external_bases(unit.owner))
        )

    def loop_steps(self, loop: Node) -> bool:
        """Whether an iteration of ``loop`` can update parameters."""
        return any(
            self.is_optimizer_step(call)
            or any(self.reaches_step(target) for target in self.graph.targets_of(call))
            for call in self._calls_in(loop)
        )

    def _calls_in(self, loop: Node) -> list[nodes.Call]:
        """The calls that stand in a loop, not in functions within it."""
        known = self._calls.get(id(loop))
        if known is None:
            known = [node for node in walk_scope(loop) if isinstance(node, nodes.Call)]
            self._calls[id(loop)] = known
        return known

    @cached_property
    def windows(self) -> list[StepLoop]:
        """The loops whose iteration is one update made of several passes of a step loop."""
        found: list[StepLoop] = []
        for step in self.loops:
            if step.is_hook or self.loop_steps(step.node):
                continue
            for loop, unit in step.outer_loops:
                if self._steps_by_itself(loop):
                    if all(known.node is not loop for known in found):
                        found.append(StepLoop(self, loop, unit))
                    break
        return found

    def _steps_by_itself(self, loop: Loop) -> bool:
        """Whether an iteration updates parameters, but for the trainings that it runs as a
        whole."""
        for call in self._calls_in(loop):
            inner = next((one for one in loops_around(call) if self._goes_back(one)), loop)
            if inner is not loop and is_within(inner, loop):
                continue
            if self.is_optimizer_step(call) or any(
                self.reaches_step(target) and not self._is_whole_training(target)
                for target in self.graph.targets_of(call)
            ):
                return True
        return False

    # -- the loops --------------------------------------------------------------------------

    @cached_property
    def loops(self) -> list[StepLoop]:
        found = []
        for unit in self.graph.units:
            if not unit.loops or not self.reaches_backward(unit):
                continue
            for loop in unit.loops:
                if self._is_step_loop(loop):
                    found.append(StepLoop(self, loop, unit))
        return found + list(self._hooks())

    def _is_step_loop(self, loop: Node) -> bool:
        """The innermost loop around a backward pass, but for loops over several losses."""
        for call in self._calls_in(loop):
            goes_back = self.is_backward(call) or any(
                self._backward_outside_loops(target, set())
                for target in self.graph.targets_of(call)
            )
            if goes_back and self._innermost(call, loop):
                return True
        return False

    def _innermost(self, node: Node, loop: Node) -> bool:
        for around in loops_around(node):
            if around is loop:
                return True
            if not self._only_over_losses(around):
                return False
        return False

    def _only_over_losses(self, loop: Node) -> bool:
        """A loop that only goes over losses, models or optimizers of one step: it runs no
        forward pass of its own and steps no optimizer."""
        if not isinstance(loop, nodes.For):
            return False
        return all(
            self.is_backward(call)
            or (
                isinstance(call.func, nodes.Attribute)
                and call.func.attrname in ("scale", "mean", "sum")
            )
            or dotted(call.func) in ("zip", "enumerate", "range", "len")
            or not isinstance(call.func, nodes.Attribute | nodes.Name)
            for call in self._calls_in(loop)
        )

    def _backward_outside_loops(self, unit: Unit, seen: set[int]) -> bool:
        if id(unit) in seen or not self.reaches_backward(unit) or self._is_whole_training(unit):
            return False
        seen.add(id(unit))
        for call in unit.calls:
            if any(not self._only_over_losses(around) for around in loops_around(call)):
                continue
            if self.is_backward(call):
                return True
            if any(self._backward_outside_loops(t, seen) for t in self.graph.targets_of(call)):
                return True
        return False

    def _is_whole_training(self, unit: Unit) -> bool:
        """Whether a function updates parameters in loops of its own and nowhere else: what else
        it runs backward (to measure its memory, say) is no step."""
        updates = [call for call in unit.calls if self._updates(call)]
        return bool(updates) and all(
            next((loop for loop in loops_around(call) if self._goes_back(loop)), None)
            for call in updates
        )

    def _updates(self, call: nodes.Call) -> bool:
        return self.is_optimizer_step(call) or any(
            self.reaches_step(target) for target in self.graph.targets_of(call)
        )

    def _goes_back(self, loop: Node) -> bool:
        """Whether an iteration of ``loop`` starts a backward pass."""
        known = self._back_loops.get(id(loop))
        if known is None:
            known = self._back_loops[id(loop)] = any(
                self.is_backward(call)
                or any(self.reaches_backward(target) for target in self.graph.targets_of(call))
                for call in self._calls_in(loop)
            )
        return known

    def _hooks(self) -> Iterator[StepLoop]:
        for unit in self.graph.units:
            if isinstance(unit.node, nodes.FunctionDef) and self.is_hook(unit):
                yield StepLoop(self, unit.node, unit)

    def is_hook(self, unit: Unit) -> bool:
        """Whether a framework calls this method for every batch."""
        if unit.owner is None or unit.name not in _HOOK_NAMES:
            return False
        for base in self.graph.values.external_bases(unit.owner):
            package, name = base.partition(".")[0], base.rpartition(".")[2]
            if package in _HOOK_PACKAGES and unit.name in STEP_HOOKS.get(_kind(name), ()):
                return True
        return False

    def loops_outside(self, node: Node, unit: Unit) -> list[tuple[Loop, Unit]]:
        """The loops that run ``node`` again and again: those around it in its unit, innermost
        first, then those around the calls that lead to it."""
        found: list[tuple[Loop, Unit]] = []
        self._outside(node, unit, found, set())
        return found

    def loops_of_callers(self, unit: Unit) -> list[tuple[Loop, Unit]]:
        """The loops that run ``unit`` again and again."""
        found: list[tuple[Loop, Unit]] = []
        self._outside_callers(unit, found, set())
        return found

    def _outside(
        self, node: Node, unit: Unit, found: list[tuple[Loop, Unit]], seen: set[int]
    ) -> None:
        for loop in loops_around(node):
            if loop is not node and all(loop is not known for known, _ in found):
                found.append((loop, unit))
        self._outside_callers(unit, found, seen)

    def _outside_callers(self, unit: Unit, found: list[tuple[Loop, Unit]], seen: set[int]) -> None:
        for site in self.graph.sites_of(unit):
            if id(site.call) not in seen and not site.handed:
                seen.add(id(site.call))
                self._outside(site.call, site.caller, found, seen)

    # -- one iteration ----------------------------------------------------------------------

    def happenings(self, body: list[Node], unit: Unit) -> list[Happening]:
        """What ``body`` runs.  Each call in it has a budget of its own, so that a large model's
        forward pass cannot crowd out what comes after it."""
        found: list[Happening] = []
        for statement in body:
            for node in self.sequence(statement):
                call = self._call_of(node)
                if call is not None and self.graph.targets_of(call):
                    inside: list[Happening] = []
                    self._enter(call, unit, (), inside, {})
                    found.extend(inside)
                found.append(Happening(node, unit, ()))
        return found

    def _call_of(self, node: Node) -> nodes.Call | None:
        """The call that a node makes: its own, or ``__setitem__`` of what it stores into."""
        if isinstance(node, nodes.Call):
            return node
        if isinstance(node, nodes.Subscript):
            return self.graph.wiring.stores.get(id(node))
        return None

    def _enter(
        self,
        call: nodes.Call,
        unit: Unit,
        chain: tuple[tuple[nodes.Call, Unit], ...],
        found: list[Happening],
        visits: dict[int, int],
    ) -> None:
        inner_chain = (*chain, (call, unit))
        for target in self.graph.targets_of(call):
            if not target.is_function or any(u is target for _, u in inner_chain):
                continue
            if visits.get(id(target), 0) >= MOST_VISITS:
                continue
            visits[id(target)] = visits.get(id(target), 0) + 1
            for statement in target.statements:
                for node in self.sequence(statement):
                    if len(found) > MOST_HAPPENINGS:
                        return
                    inner = self._call_of(node)
                    if inner is not None and len(inner_chain) < DEEPEST_CALL:
                        self._enter(inner, target, inner_chain, found, visits)
                    found.append(Happening(node, target, inner_chain))


class StepLoop:
    """A loop that trains; where a framework owns the loop, the hook that it calls each step."""

    def __init__(self, steps: Steps, node: Loop | nodes.FunctionDef, unit: Unit) -> None:
        self.steps = steps
        self.node = node
        self.unit = unit

    @property
    def is_hook(self) -> bool:
        return isinstance(self.node, nodes.FunctionDef)

    @cached_property
    def happenings(self) -> list[Happening]:
        """Everything one iteration runs, in order."""
        body: list[Node] = list(self.node.body)
        if isinstance(self.node, nodes.While):
            body = [self.node.test, *body]
        return self.steps.happenings(body, self.unit)

    @cached_property
    def stores(self) -> dict[int, list[Happening]]:
        """The assignments that one iteration makes, by the id of the statement."""
        found: dict[int, list[Happening]] = {}
        for happening in self.happenings:
            if isinstance(happening.node, nodes.Assign | nodes.AnnAssign | nodes.AugAssign):
                found.setdefault(id(happening.node), []).append(happening)
        return found

    @cached_property
    def calls(self) -> list[Happening]:
        return [h for h in self.happenings if isinstance(h.node, nodes.Call)]

    @cached_property
    def backwards(self) -> list[Happening]:
        return [h for h in self.calls if self.steps.is_backward(h.call)]

    def conditions_of(self, happening: Happening) -> Iterator[tuple[Condition, Unit]]:
        """What has to hold within one iteration for this to happen, along the whole chain."""
        for node, unit in [*happening.chain, (happening.node, happening.unit)]:
            inside_loop = unit is self.unit and node is happening.top
            for condition in conditions(node):
                if inside_loop and not self.is_hook:
                    if not is_within(condition.test, self.node):
                        continue
                    if isinstance(self.node, nodes.While) and condition.test is self.node.test:
                        continue
                yield condition, unit

    @cached_property
    def outer_loops(self) -> list[tuple[Loop, Unit]]:
        """The loops around this one, in its unit and, through its callers, in others."""
        if self.is_hook:
            return self.steps.loops_of_callers(self.unit)
        return self.steps.loops_outside(self.node, self.unit)


def _in_order(node: Node) -> Iterator[Node]:
    """Post-order: what an expression is made of comes before it."""
    stack: list[tuple[Node, bool]] = [(node, False)]
    while stack:
        at, done = stack.pop()
        if done:
            yield at
            continue
        if isinstance(at, SCOPES):
            continue
        stack.append((at, True))
        children = list(at.get_children())
        if isinstance(at, COMPREHENSIONS):
            children = [c for c in children if isinstance(c, nodes.Comprehension)] + [
                c for c in children if not isinstance(c, nodes.Comprehension)
            ]
        elif isinstance(at, nodes.Assign | nodes.AnnAssign | nodes.AugAssign | nodes.For):
            value = at.iter if isinstance(at, nodes.For) else at.value
            children = [c for c in children if c is value] + [
                c for c in children if c is not value
            ]
        stack.extend((child, False) for child in reversed(children))


def _kind(base: str) -> str:
    for ending in ("LightningModule", "TrainerCallback", "Callback", "Hook"):
        if base.endswith(ending):
            return ending
    return "Trainer" if base.endswith("Trainer") else base
