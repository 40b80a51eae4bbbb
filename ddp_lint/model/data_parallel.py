"""Subject: models that ``nn.DataParallel`` trains on several GPUs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from astroid import nodes

from ddp_lint.model.facts import Facts, Spot
from ddp_lint.model.feeding import Feeding, frame_of, without_gradients
from ddp_lint.model.frames import Frame, origins_in
from ddp_lint.model.gradients import Training
from ddp_lint.model.modules import Unit
from ddp_lint.model.origins import Instance, Made, Origin
from ddp_lint.model.roles import role_of_name
from ddp_lint.model.steps import Happening
from ddp_lint.model.torch_api import ROLES
from ddp_lint.model.tree import Node, elements, source, walk
from ddp_lint.model.wrappers import kind

_DEEPEST = 3


@dataclass(frozen=True)
class DataParallelCall(Spot):
    """A construction of ``nn.DataParallel`` around a model that is trained."""

    @property
    def model_text(self) -> str:
        assert isinstance(self.node, nodes.Call)
        model = _model(self.node)
        return source(model) if model is not None else "the model"


def data_parallel_calls(training: Training) -> Iterator[DataParallelCall]:
    """Where models are wrapped for several GPUs, and trained so.

    Around a model that is only run, or whose checkpoint's names ask for a wrapper, there are no
    gradients to gather; and on one GPU it copies nothing.  Where the same model is wrapped for
    several processes too, this is what is left where nobody starts them.
    """
    facts, use = training.facts, _Use(training)
    for call, unit in facts.calls:
        if any(ROLES.get(name) == "dp" for name in facts.names(call)):
            made = next((o for o in facts.values.of(call) if isinstance(o, Made)), None)
            if (
                made is not None
                and not _has_one_device(call)
                and use.trains(made, unit)
                and not _has_processes_too(facts, made)
            ):
                yield DataParallelCall(facts, call)


def _has_one_device(call: nodes.Call) -> bool:
    """``device_ids=[rank]``."""
    given = [k.value for k in call.keywords if k.arg == "device_ids"] or call.args[1:2]
    return any(
        isinstance(one, nodes.List | nodes.Tuple)
        and len(elements(one)) == 1
        and not isinstance(elements(one)[0], nodes.Starred)
        for one in given
    )


def _model(call: nodes.Call) -> Node | None:
    """What a wrapper is made around."""
    named = [k.value for k in call.keywords if k.arg == "module"]
    return next(iter([*call.args[:1], *named]), None)


def _has_processes_too(facts: Facts, made: Made) -> bool:
    """Whether a function that has a model wrapped so has the same one wrapped in
    DistributedDataParallel as well."""
    given = facts.once(_given)
    return any(model in given["ddp"] for model in given[made])


def _given(facts: Facts) -> dict[Origin | str, set[tuple[str, int]]]:
    """By the wrapper that a call gives, itself or what it calls, the models that are handed to it,
    as they are written and in which unit; those of DistributedDataParallel, and of classes that
    are one, under "ddp"."""
    found: dict[Origin | str, set[tuple[str, int]]] = defaultdict(set)
    for call, unit in facts.calls:
        model = _model(call)
        if model is None:
            continue
        for origin in facts.origins(call):
            of = kind(facts, origin)
            if of in ("ddp", "dp"):
                found["ddp" if of == "ddp" else origin].add((model.as_string(), id(unit)))
    return found


class _Use:
    """What one program does with its wrappers."""

    def __init__(self, training: Training) -> None:
        self.facts = training.facts
        self.owners = training.owners

    def trains(self, made: Made, unit: Unit) -> bool:
        """Whether a backward pass or an optimizer reaches what a wrapper was made around."""
        if made in self._in_steps or made in self._backpropagated:
            return True
        held = self.owners.sources(made.call, Frame(unit)).modules
        if held & self._optimized or made in self._handed_to_optimizers:
            return True
        return self._is_out_of_sight(made.call) and self._shares_a_start(unit)

    @cached_property
    def _in_steps(self) -> set[Origin]:
        """What training steps run forward, or hand to what cannot be entered."""
        found: set[Origin] = set()
        for loop in self.facts.steps.loops:
            for happening in loop.calls:
                call, frame = happening.call, frame_of(happening)
                used = [self._receiver(call)]
                if not self.facts.graph.targets_of(call) and not self.facts.names(call):
                    used += call.args
                wrappers = {w for node in used for w in self._wrappers(node, frame)} - found
                if wrappers and not without_gradients(self.facts, happening):
                    found |= wrappers
        return found

    @cached_property
    def _backpropagated(self) -> set[Origin]:
        """What runs forward for a backward pass outside of loops that are known to train."""
        feeding = self.facts.once(Feeding)
        found: set[Origin] = set()
        for call, unit in self.facts.calls:
            wrappers = set(self._wrappers(self._receiver(call), Frame(unit))) - found
            if wrappers and feeding.backwards(Happening(call, unit, ())):
                found |= wrappers
        return found

    @cached_property
    def _optimized(self) -> set[Origin]:
        """The models whose parameters optimizers hold."""
        return {
            module
            for call, _ in self.facts.calls
            for origin in self.facts.values.of(call)
            if self.facts.roles.role(origin) == "optimizer"
            for module in self.owners.held_by(origin).modules
        }

    @cached_property
    def _handed_to_optimizers(self) -> set[Origin]:
        """What an engine is given, and functions of the project that make an optimizer."""
        return {
            wrapper
            for call, unit in self.facts.calls
            if "deepspeed.initialize" in self.facts.names(call)
            or any(self._makes_optimizer(t, 0) for t in self.facts.graph.targets_of(call))
            for argument in [*call.args, *(k.value for k in call.keywords)]
            for part in walk(argument)
            for wrapper in self._wrappers(part, Frame(unit))
        }

    def _makes_optimizer(self, unit: Unit, depth: int) -> bool:
        return any(
            any(role_of_name(name) == "optimizer" for name in self.facts.names(call))
            or (
                depth < _DEEPEST
                and any(
                    self._makes_optimizer(target, depth + 1)
                    for target in self.facts.graph.targets_of(call)
                )
            )
            for call in unit.calls
        )

    def _receiver(self, call: nodes.Call) -> Node:
        """What a call runs, where it is a model."""
        func = call.func
        if isinstance(func, nodes.Attribute) and func.attrname == "forward":
            return func.expr
        return func

    def _wrappers(self, node: Node, frame: Frame) -> Iterator[Made]:
        if isinstance(node, nodes.Name | nodes.Attribute | nodes.Subscript):
            for origin in origins_in(self.facts.graph, node, frame):
                if isinstance(origin, Made) and ROLES.get(origin.name) == "dp":
                    yield origin

    def _is_out_of_sight(self, call: nodes.Call) -> bool:
        """A part of a model that is put in its place: ``model.features = DataParallel(...)``."""
        parent = call.parent
        return isinstance(parent, nodes.Assign) and any(
            isinstance(target, nodes.Subscript)
            or (
                isinstance(target, nodes.AssignAttr)
                and not any(isinstance(o, Instance) for o in self.facts.origins(target.expr))
            )
            for target in parent.targets
        )

    def _shares_a_start(self, unit: Unit) -> bool:
        """Whether what makes the wrapper also comes to a training step."""
        starts = self.facts.ranks.starts(unit)
        return any(starts & self.facts.ranks.starts(one.unit) for one in self.facts.steps.loops)
