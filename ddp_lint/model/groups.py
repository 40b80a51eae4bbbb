"""Layer 13, groups: process groups that stay open, and that some ranks close too early."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from astroid import nodes

from ddp_lint.finding import Fix, Related
from ddp_lint.model.collectives import Collective, Collectives
from ddp_lint.model.divided import DividedCall, divided
from ddp_lint.model.facts import Facts, Spot
from ddp_lint.model.flow import always_exits, arm_of, conditions
from ddp_lint.model.frames import Frame
from ddp_lint.model.guards import RANKS
from ddp_lint.model.mending import asks, distributed_name
from ddp_lint.model.modules import Unit
from ddp_lint.model.several import is_alone, makes_several
from ddp_lint.model.story import Event, Story
from ddp_lint.model.torch_api import COLLECTIVES, DESTROY_GROUP, DISTRIBUTED_MAKERS, INIT_GROUP
from ddp_lint.model.tree import Node, ancestors, dotted, source, walk


@dataclass(frozen=True)
class OpenGroup(Spot):
    """A process group that nothing in the program destroys."""

    frame: Frame
    later: tuple[Event, ...]
    others: tuple[nodes.Call, ...] = ()

    @property
    def places(self) -> tuple[Related, ...]:
        """Where it is made otherwise: one end is enough for all."""
        return tuple(self.facts.related(call, "it may also be made here") for call in self.others)

    @property
    def closing(self) -> Fix | None:
        """Destroying it at the end of the function that runs all the work."""
        frame = next((at for at in self.frame.outward if self._runs_all_in(at)), None)
        if frame is None:
            return None
        unit = frame.unit
        name = distributed_name(unit.module)
        if name is None or isinstance(unit.node, nodes.Lambda) or not unit.statements:
            return None
        last = unit.statements[-1]
        if isinstance(last, nodes.If) and "__name__" in last.test.as_string():
            last = last.body[-1]
        if unit.returns or always_exits([last]) is not None:
            return None
        text = f"{name}.destroy_process_group()"
        if self._may_be_missing(frame):
            text = f"if {name}.is_initialized():\n    {text}"
        edit = self.facts.insert_after(last, text)
        return Fix("Destroy the group at the end", (edit,), safe=False)

    def _runs_all_in(self, frame: Frame) -> bool:
        """Whether whatever uses the group runs in this frame.

        The story may not know all of it: a function is only sure to be the whole when it trains,
        else it may be the set-up of something that nobody here sees.
        """
        work = [event for event in self.later if _is_work(self.facts, event.call)]
        if any(all(at.unit is not frame.unit for at in event.frame.outward) for event in work):
            return False
        inner = takewhile(lambda at: at is not frame, self.frame.outward)
        if any(site.spawned for at in inner for site in self.facts.graph.sites_of(at.unit)):
            return False  # the group lives in the process that is started there
        if not frame.unit.is_function:
            return True
        return not _builds(frame.unit) and any(
            self.facts.steps.is_backward(event.call) for event in work
        )

    def _may_be_missing(self, frame: Frame) -> bool:
        """Whether the frame also comes to its end without having made the group; not where it
        raises instead."""
        inner = [at.call for at in self.frame.outward if at.call is not None]
        reached = list(self.frame.outward).index(frame)
        return any(
            not isinstance(condition.exit, nodes.Raise)
            for call in (self.node, *inner[:reached])
            for condition in asks(call)
        )


def _builds(unit: Unit) -> bool:
    return unit.name == "__init__" and unit.owner is not None


def _is_work(facts: Facts, call: nodes.Call) -> bool:
    return bool(facts.names(call) & ((COLLECTIVES | DISTRIBUTED_MAKERS) - INIT_GROUP)) or (
        facts.steps.is_backward(call)
    )


def open_groups(facts: Facts) -> Iterator[OpenGroup]:
    if not any(facts.calls_to(INIT_GROUP)) or facts.once(makes_several) is None:
        return
    if any(facts.calls_to({"os._exit"})):
        return  # it leaves without shutting anything down
    destroying = [(call, unit) for call, unit in facts.calls if _destroys(facts, call)]
    seen: set[int] = set()
    for telling in facts.once(Story).tellings:
        calls = [event.call for event in telling]
        left: list[Event] = []
        for event in telling:
            call = event.call
            if not facts.names(call) & INIT_GROUP or id(call) in seen:
                continue
            seen.add(id(call))
            if is_alone(facts, call):
                continue
            before = {id(one) for one in calls[: event.number]}
            unit = facts.values.unit_of(call)
            if not any(
                id(other) not in before and not facts.ranks.are_apart(unit, holder)
                for other, holder in destroying
            ):
                left.append(event)
        if left and not _is_for_others(facts, telling, left[0]):
            first, others = left[0], tuple(event.call for event in left[1:])
            later = tuple(telling[first.number + 1 :])
            yield OpenGroup(facts, first.call, first.frame, later, others)


_BARRIERS = frozenset({"torch.distributed.barrier"})


def _is_for_others(facts: Facts, telling: Sequence[Event], making: Event) -> bool:
    """Whether a function makes the group and does nothing with it, and nobody is seen to call it:
    who does may end it."""
    start = list(making.frame.outward)[-1].unit
    return (
        start.is_function
        and not facts.graph.sites_of(start)
        and not any(
            _is_work(facts, event.call) and not facts.names(event.call) & _BARRIERS
            for event in telling[making.number + 1 :]
        )
    )


def _destroys(facts: Facts, call: nodes.Call) -> bool:
    """A call that destroys a group, or hands the function that does to somebody."""
    if facts.names(call) & DESTROY_GROUP:
        return True
    return any(
        dotted(argument).rpartition(".")[2] == "destroy_process_group"
        for argument in [*call.args, *(k.value for k in call.keywords)]
    )


# -- closed on some ranks ---------------------------------------------------------------------


@dataclass(frozen=True)
class EarlyClosing(Spot):
    """A group destroyed after an error, on the rank that failed, while others are using it."""

    used: Node

    @property
    def used_text(self) -> str:
        return source(self.used)

    @property
    def places(self) -> tuple[Related, ...]:
        return (self.facts.related(self.used, "the other ranks are in here when one fails"),)


def divided_closings(facts: Facts) -> Iterator[DividedCall]:
    """Groups destroyed under a guard that keeps other ranks away."""
    closing = facts.once(_Closing)
    if facts.once(makes_several) is None:
        return
    for unit in facts.units:
        if closing.matters(unit):
            yield from divided(facts, unit, closing.reached)


def early_closings(facts: Facts) -> Iterator[EarlyClosing]:
    """Groups destroyed in a ``finally`` or ``except`` around what uses them."""
    closing = facts.once(_Closing)
    if facts.once(makes_several) is None:
        return
    for unit in facts.units:
        if not closing.matters(unit):
            continue
        for call in unit.calls:
            if closing.reached(call, Frame(unit)):
                used = _used_in_try(facts, call)
                if used is not None:
                    yield EarlyClosing(facts, call, used)


def _used_in_try(facts: Facts, call: nodes.Call) -> Node | None:
    for child, parent in ancestors(call):
        if isinstance(parent, nodes.Try):
            arm = arm_of(parent, child)
            if arm == "finalbody":
                return _use(facts, parent.body)
        elif isinstance(parent, nodes.ExceptHandler):
            around = parent.parent
            if isinstance(around, nodes.Try):
                return _use(facts, around.body)
    return None


def _use(facts: Facts, body: list[Node]) -> Node | None:
    """The first call of a block that sends something, or trains."""
    sending = facts.once(Collectives)
    for statement in body:
        for node in walk(statement):
            if not isinstance(node, nodes.Call):
                continue
            if facts.names(node) & COLLECTIVES or sending.direct(node) is not None:
                return node
            for target in facts.graph.targets_of(node):
                if (
                    target.is_function
                    and target.node.name != "__init__"
                    and (sending.may_reach(target) or facts.steps.reaches_backward(target))
                ):
                    return node
    return None


class _Closing:
    """Which calls destroy the group, themselves or in what they certainly run."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self._matters: dict[int, bool] = {}

    def matters(self, unit: Unit) -> bool:
        known = self._matters.get(id(unit))
        if known is None:
            self._matters[id(unit)] = False
            known = self._matters[id(unit)] = any(
                self.facts.names(call) & DESTROY_GROUP
                or any(self.matters(target) for target in self.facts.graph.targets_of(call))
                for call in unit.calls
            )
        return known

    def reached(self, call: nodes.Call, frame: Frame) -> list[Collective]:
        if self.facts.names(call) & DESTROY_GROUP:
            return (
                [] if call.args or call.keywords else [Collective("destroy_process_group", call)]
            )
        for target in self.facts.graph.targets_of(call):
            if not target.is_function or frame.enters(target) or not self.matters(target):
                continue
            if target.is_generator or not self._only_closes(target):
                continue
            for inner in target.calls:
                every = conditions(inner)
                if all(self.facts.guards.all_hold(every, rank) is True for rank in RANKS):
                    found = self.reached(inner, Frame(target, call=call, caller=frame))
                    if found:
                        return [Collective(found[0].name, found[0].node, (inner,))]
        return []

    def _only_closes(self, unit: Unit) -> bool:
        """A helper that cleans up, not a whole program that ends with it."""
        return not self.facts.steps.reaches_backward(unit) and not any(
            self.facts.names(call) & INIT_GROUP for call in unit.calls
        )
