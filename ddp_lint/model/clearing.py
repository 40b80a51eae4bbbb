"""Subject: gradients that are never cleared between the steps of a loop."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from astroid import nodes

from ddp_lint.finding import Fix, Related
from ddp_lint.model.facts import Spot
from ddp_lint.model.flow import loops_around
from ddp_lint.model.gradients import Training, Update
from ddp_lint.model.modules import Unit
from ddp_lint.model.origins import Instance, Made, Origin, Param, Unknown
from ddp_lint.model.tree import Node, dotted, is_within, source, statement
from ddp_lint.model.ways import Event, body_of

_OPTIMIZERS = frozenset({"optimizer", "prepared optimizer"})
_CLEARING_WORDS = ("zero_grad", "clear_grad", "reset_grad", "zero_gradient", "clear_gradient")


@dataclass(frozen=True)
class Uncleared(Spot):
    """A loop whose ``steps`` use the sum of all gradients so far; it stands at the loop."""

    update: Update
    steps: tuple[Event, ...]

    @property
    def optimizers_text(self) -> str:
        names = dict.fromkeys(
            source(s.move.target) for s in self.steps if s.move.target is not None
        )
        return " and ".join(f"`{name}`" for name in names)

    @property
    def remedy(self) -> str:
        first = self.steps[0].move.target
        assert first is not None
        return f"{source(first)}.zero_grad()"

    @property
    def chain(self) -> tuple[Related, ...]:
        says = "the step, with gradients that nobody has cleared"
        return tuple(self.facts.related(step.node, says) for step in self.steps)

    @property
    def fix(self) -> Fix | None:
        """Clear before the first backward, where loop, backward and step stand together."""
        backwards = self.update.events("backward")
        events = [*backwards[:1], *self.steps]
        if not backwards or self.update.windows or len(self.steps) != 1:
            return None
        if any(event.frame.caller is not None for event in events):
            return None
        at = statement(backwards[0].node)
        while at.parent is not None and at.parent is not self.node:
            if all(is_within(other.node, at) for other in backwards):
                break
            at = at.parent
        edits = (self.facts.insert_before(at, self.remedy),)
        return Fix(f"Insert `{self.remedy}`", edits, safe=False)


def never_cleared(training: Training) -> Iterator[Uncleared]:
    """Loops that step an optimizer whose gradients nothing clears."""
    for update in training.updates:
        if not isinstance(update.node, nodes.For | nodes.While) or _turns_once(update.node):
            continue
        loop = _Loop(training, update)
        lacking = [step for step in update.steps if loop.lacks(step)]
        if lacking:
            distinct = {source(s.move.target): s for s in reversed(lacking) if s.move.target}
            steps = sorted(distinct.values(), key=lambda s: update.steps.index(s))
            yield Uncleared(training.facts, update.node, update, tuple(steps))


class _Loop:
    """What one loop runs, for the question whether anything in it clears."""

    def __init__(self, training: Training, update: Update) -> None:
        self.training = training
        self.facts = training.facts
        self.update = update

    def lacks(self, step: Event) -> bool:
        target = step.move.target
        if step.move.how not in ("plain", "prepared", "scaler", "native") or target is None:
            return False
        origins = self.facts.origins(target)
        if not origins or not all(self._is_known(o, step) for o in origins):
            return False
        if any(self._is_new(o) for o in origins):
            return False
        return not any(self._may_clear(node, step) for node in self._nodes)

    def _is_known(self, origin: Origin, step: Event) -> bool:
        if isinstance(origin, Instance) and self._clears_itself(origin):
            return False
        return self.facts.roles.role(origin) in _OPTIMIZERS or (
            step.move.how == "scaler" and not isinstance(origin, Unknown | Instance)
        )

    def _clears_itself(self, origin: Instance) -> bool:
        for cls in self.facts.values.mro(origin.cls):
            for method in cls.methods.values():
                if method.name != "zero_grad" and "clear" in self.training.moves.kinds(method):
                    return True
        return False

    def _is_new(self, origin: Origin) -> bool:
        """Made within the loop: its gradients are fresh; so are those of a model made there."""
        if isinstance(origin, Made | Instance) and origin.call is not None:
            if self._runs(origin.call):
                return True
            held = self.training.owners.held_by(origin)
            return any(
                isinstance(m, Made | Instance) and m.call is not None and self._runs(m.call)
                for m in held.modules
            )
        return False

    def _runs(self, node: Node) -> bool:
        unit = self.facts.values.unit_of(node)
        return is_within(node, self.update.node) or unit in self._units

    @cached_property
    def _units(self) -> list[Unit]:
        return [h.unit for h in self.update.happenings if h.chain]

    @cached_property
    def _nodes(self) -> list[tuple[Node, Event | None]]:
        clears = [(e.node, e) for e in self.update.events("clear")]
        seen = {id(node) for node, _ in clears}
        may_run = self.training.walker.may_run
        others = [
            (h.node, None)
            for h in self.update.happenings
            if id(h.node) not in seen
            and isinstance(h.node, nodes.Call | nodes.Assign)
            and all(may_run(unit) for unit in [*(u for _, u in h.chain), h.unit])
        ]
        return [*clears, *others, *((n, None) for n in self._around())]

    def _around(self) -> Iterator[Node]:
        """Calls right around a loop that only repeats steps on one batch."""
        loop = self.update.node
        call = getattr(loop, "iter", None)
        repeats = isinstance(loop, nodes.While) or (
            isinstance(call, nodes.Call) and dotted(call.func) in ("range", "trange")
        )
        for outer in loops_around(loop):
            if repeats:
                for child in body_of(outer):
                    if not is_within(loop, child):
                        yield from child.nodes_of_class(nodes.Call)
            return

    def _may_clear(self, entry: tuple[Node, Event | None], step: Event) -> bool:
        node, event = entry
        target = step.move.target
        assert target is not None
        owners = self.training.owners
        if event is not None:
            return owners.holds(target, step.frame, event.move.target, event.frame) is not False
        for move in self.training.moves.of(node):
            if move.kind == "clear":
                return True  # not on any way that was walked: out of sight, so perhaps
        if not isinstance(node, nodes.Call):
            return False
        name = getattr(node.func, "attrname", getattr(node.func, "name", ""))
        if any(word in name for word in _CLEARING_WORDS):
            return not self.facts.graph.targets_of(node)
        return self._is_out_of_sight(node) and self._is_given(node, target)

    def _is_out_of_sight(self, call: nodes.Call) -> bool:
        if self.facts.graph.targets_of(call):
            return False
        origins = self.facts.origins(call.func)
        return any(isinstance(o, Unknown | Param) for o in origins)

    def _is_given(self, call: nodes.Call, optimizer: Node) -> bool:
        given = [*call.args, *(k.value for k in call.keywords)]
        return any(dotted(a) and dotted(a) == dotted(optimizer) for a in given)


def _turns_once(loop: Node) -> bool:
    call = getattr(loop, "iter", None)
    return (
        isinstance(call, nodes.Call)
        and dotted(call.func) in ("range", "trange")
        and len(call.args) == 1
        and getattr(call.args[0], "value", None) == 1
    )
