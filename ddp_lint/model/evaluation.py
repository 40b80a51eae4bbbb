"""Subject: loops that evaluate a model, and whether they record a graph for nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from astroid import nodes

from ddp_lint.finding import Fix, Related
from ddp_lint.model.facts import Spot, called_name
from ddp_lint.model.flow import exclusive, loops_around
from ddp_lint.model.frames import Frame, origins_in
from ddp_lint.model.grad_mode import GradMode
from ddp_lint.model.gradients import Training
from ddp_lint.model.modules import Unit
from ddp_lint.model.origins import Instance, Made, Origins, inner
from ddp_lint.model.recorded import MODULES, Recorded
from ddp_lint.model.tree import Node, ancestors, dotted, is_within, position, walk_scope

_OWNED = ("lightning", "pytorch_lightning", "transformers", "trl", "composer", "mmengine", "mmcv")
_DEEPEST = 4


@dataclass(frozen=True)
class RecordingEvaluation(Spot):
    """An evaluation that keeps a graph; it stands at the loop over the data."""

    unit: Unit
    forward: Node
    eval_: Node

    @property
    def forward_text(self) -> str:
        assert isinstance(self.forward, nodes.Call)
        return called_name(self.forward)

    @property
    def chain(self) -> tuple[Related, ...]:
        return (
            self.facts.related(self.eval_, "the model is switched to evaluation here"),
            self.facts.related(self.forward, "the forward pass that is recorded"),
        )

    @property
    def fix(self) -> Fix | None:
        """Decorate the function, where it does nothing but evaluate."""
        node = self.unit.node
        if not isinstance(node, nodes.FunctionDef) or self.unit.is_generator:
            return None
        if "torch" not in self.unit.module.body.bindings or self.eval_.scope() is not node:
            return None
        if self.facts.steps.reaches_backward(self.unit):
            return None
        edits = (self.facts.insert_decorator(node, "@torch.no_grad()"),)
        return Fix("Decorate the function with `@torch.no_grad()`", edits, safe=False)


class Evaluations:
    """The evaluation loops of one program."""

    def __init__(self, training: Training) -> None:
        self.training = training
        self.facts = training.facts
        self.mode = GradMode(training.facts)
        self.recorded = Recorded(training.facts, self.mode)
        self._switching: dict[tuple[int, int], bool] = {}

    @cached_property
    def recording(self) -> list[RecordingEvaluation]:
        """Evaluation loops whose forward passes are recorded for certain."""
        if not self._has_switch or self._recording_is_off:
            return []
        return [
            found
            for unit in self.facts.units
            for loop in unit.loops
            if isinstance(loop, nodes.For) and (found := self._recording(loop, unit)) is not None
        ]

    def _recording(self, loop: nodes.For, unit: Unit) -> RecordingEvaluation | None:
        if not self._may_be_switched(unit, 0) or self._is_owned(unit):
            return None
        if self.mode.at(loop) != "on":
            return None
        if not self._goes_over_data(loop, unit):
            return None
        switch = self._switched_to_eval(loop, unit, 0)
        if switch is None or self._learns(loop, unit):
            return None
        forward = self._recorded(loop, unit, switch)
        if forward is None:
            return None
        return RecordingEvaluation(self.facts, loop, unit, forward, switch)

    def _recorded(self, loop: nodes.For, unit: Unit, switch: Node) -> Node | None:
        """The forward pass that is recorded: of what has weights, rather than what may have."""
        perhaps: Node | None = None
        named = _switched(switch) if switch.scope() is loop.scope() else frozenset()
        for forward, frame in self._forwards(list(loop.body), Frame(unit), named, 0):
            answer = self.recorded.by(origins_in(self.facts.graph, forward.func, frame))
            if answer == "no" or self.mode.on_way(forward, frame) != "on":
                continue
            if answer == "yes":
                return forward
            perhaps = perhaps or forward
        return perhaps

    # -- what the loop does -----------------------------------------------------------------

    def _goes_over_data(self, loop: nodes.For, unit: Unit) -> bool:
        """A loop over a loader, that goes on to its end."""
        if any(isinstance(statement, nodes.Break | nodes.Return) for statement in loop.body):
            return False
        iterated: Node = loop.iter
        while (
            isinstance(iterated, nodes.Call)
            and iterated.args
            and not self.facts.roles_of(iterated)
        ):
            if dotted(iterated.func).rpartition(".")[2] not in (
                "enumerate",
                "tqdm",
                "zip",
                "log_every",
                "islice",
                "track",
            ):
                break
            iterated = iterated.args[0]
        if self.facts.roles_of(iterated) & {"loader", "prepared loader", "engine loader"}:
            return True
        if not isinstance(iterated, nodes.Name | nodes.Attribute):
            return False
        origins = self.facts.origins(iterated)
        name = dotted(iterated).rpartition(".")[2].lower()
        return not self.facts.roles_of(iterated) and "loader" in name and bool(origins)

    def _forwards(
        self, body: list[Node], frame: Frame, named: frozenset[str], depth: int
    ) -> Iterator[tuple[nodes.Call, Frame]]:
        """Calls of models within, those in other functions of the project too.

        ``named`` are texts that are models in this frame, for they were switched to evaluation.
        """
        for statement in body:
            for node in walk_scope(statement):
                if not isinstance(node, nodes.Call):
                    continue
                if self._is_forward(node, frame, named):
                    yield node, frame
                elif depth < _DEEPEST:
                    for unit in self.facts.graph.targets_of(node):
                        inside = getattr(unit.node, "body", None)
                        if isinstance(inside, list) and not frame.enters(unit):
                            inner = Frame(unit, "", node, frame)
                            yield from self._forwards(inside, inner, frozenset(), depth + 1)

    def _is_forward(self, call: nodes.Call, frame: Frame, named: frozenset[str]) -> bool:
        if not isinstance(call.func, nodes.Name | nodes.Attribute):
            return False
        origins = origins_in(self.facts.graph, call.func, frame)
        if not self._is_module(origins):
            return dotted(call.func) in named and _is_built_elsewhere(origins)
        names = {getattr(o, "name", getattr(getattr(o, "cls", None), "name", "")) for o in origins}
        return not all(
            str(name).endswith(("Loss", "Accuracy", "Softmax", "LogSoftmax")) for name in names
        )

    def _is_module(self, origins: Origins) -> bool:
        return any(self.facts.roles.role(origin) in MODULES for origin in origins)

    def _learns(self, loop: Node, unit: Unit) -> bool:
        """A backward, a step or a gradient that is asked for: not an evaluation, or one that
        needs its graph."""
        kinds: set[str] = set()
        for node in walk_scope(loop):
            kinds.update(move.kind for move in self.training.moves.of(node))
            if not isinstance(node, nodes.Call):
                continue
            for target in self.facts.graph.targets_of(node):
                kinds.update(self.training.moves.kinds(target))
                if self._asks_for_gradients(target, 0):
                    return True
            if _asks(node):
                return True
        if kinds & {"backward", "step", "clear"}:
            return True
        fed = self.facts.tensors.feeding_backward(unit)
        return any(
            isinstance(node, nodes.AssignName) and node.name in fed
            for node in walk_scope(loop)
            if not is_within(node, loop.target)  # type: ignore[attr-defined]
            and isinstance(node.parent, nodes.AugAssign)
        )

    def _asks_for_gradients(self, unit: Unit, depth: int) -> bool:
        return any(_asks(call) for call in unit.calls) or (
            depth < 2
            and any(
                self._asks_for_gradients(target, depth + 1)
                for call in unit.calls
                for target in self.facts.graph.targets_of(call)
            )
        )

    # -- eval() -----------------------------------------------------------------------------

    def _switched_to_eval(self, at: Node, unit: Unit, depth: int) -> Node | None:
        """The ``model.eval()`` that is in force at a place, here or in the caller."""
        last: nodes.Call | None = None
        for call in sorted(unit.calls, key=position):
            func = call.func
            if position(call) > position(at) or not isinstance(func, nodes.Attribute):
                continue
            if func.attrname not in ("eval", "train") or exclusive(call, at):
                continue
            if self._is_scorer(func.expr):
                continue
            if any(not is_within(at, loop) for loop in loops_around(call)):
                continue
            last = None if func.attrname == "train" and not _is_off(call) else call
        if last is not None or depth >= 2 or not unit.is_function:
            return last
        sites = [s for s in self.facts.graph.sites_of(unit) if not s.handed]
        for site in sites:
            found = self._switched_to_eval(site.call, site.caller, depth + 1)
            if found is not None:
                return found
        return None

    def _is_scorer(self, receiver: Node) -> bool:
        """``eval`` of something that is no module."""
        origins = self.facts.origins(receiver)
        return any(
            isinstance(o, Instance) and self.facts.roles.role(o) not in MODULES for o in origins
        )

    # -- the whole program ------------------------------------------------------------------

    def _may_be_switched(self, unit: Unit, depth: int) -> bool:
        """Whether anything is switched to evaluation in a unit or its callers."""
        known = self._switching.get((id(unit), depth))
        if known is None:
            known = any(getattr(call.func, "attrname", "") == "eval" for call in unit.calls) or (
                depth < 2
                and unit.is_function
                and any(
                    self._may_be_switched(site.caller, depth + 1)
                    for site in self.facts.graph.sites_of(unit)
                )
            )
            self._switching[id(unit), depth] = known
        return known

    @cached_property
    def _has_switch(self) -> bool:
        return any(getattr(call.func, "attrname", "") == "eval" for call, _ in self.facts.calls)

    @cached_property
    def _recording_is_off(self) -> bool:
        """Switched off for the process, or for the parameters: nothing is recorded then."""
        for call, _ in self.facts.calls:
            name = getattr(call.func, "attrname", getattr(call.func, "name", ""))
            if name == "set_grad_enabled" and isinstance(call.parent, nodes.Expr):
                return True
            if name == "requires_grad_" and _is_off(call):
                return True
            if name == "__enter__":
                return True
        return any(
            isinstance(binding.value, nodes.Const) and binding.value.value is False
            for module in self.facts.modules
            for _, _, binding in module.attribute_stores.get("requires_grad", ())
        )

    def _is_owned(self, unit: Unit) -> bool:
        """A hook of a framework, which switches recording itself."""
        if unit.owner is None:
            return False
        bases = self.facts.values.external_bases(unit.owner)
        return any(base.partition(".")[0] in _OWNED for base in bases)


def _switched(switch: Node) -> frozenset[str]:
    """How the model of ``model.eval()`` and ``net = build().cuda().eval()`` can be called."""
    assert isinstance(switch, nodes.Call)
    assert isinstance(switch.func, nodes.Attribute)
    found = {dotted(switch.func.expr)}
    for child, parent in ancestors(switch):
        if isinstance(parent, nodes.Assign) and parent.value is child:
            found.update(dotted(target) for target in parent.targets)
        if not (isinstance(parent, nodes.Attribute) or getattr(parent, "func", None) is child):
            break  # further up it is no longer the model that is spoken of
    return frozenset(found - {""})


def _is_built_elsewhere(origins: Origins) -> bool:
    """What somebody outside the project built: ``zoo.build()``, also in parts of it."""
    return bool(origins) and all(isinstance([*inner(o)][-1], Made) for o in origins)


def _asks(call: nodes.Call) -> bool:
    name = getattr(call.func, "attrname", getattr(call.func, "name", ""))
    if name == "requires_grad_":
        return not _is_off(call)
    return name in ("grad", "enable_grad", "backward", "jacobian", "jvp", "vjp", "retain_grad")


def _is_off(call: nodes.Call) -> bool:
    given = [*call.args, *(k.value for k in call.keywords)]
    return bool(given) and isinstance(given[0], nodes.Const) and given[0].value is False


__all__ = ["Evaluations", "RecordingEvaluation"]
