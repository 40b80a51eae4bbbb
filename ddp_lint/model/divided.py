"""Layer 12, divided: what only some ranks do though all of them have to.

A call stands under a guard of its own function, and what it makes wants all ranks.  That is no
defect where the other ranks make as many of the same kind in the same function: in the other
arm, after the early return, in the pair of barriers that lets the first rank go first.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from astroid import nodes

from ddp_lint.finding import Related
from ddp_lint.model.collectives import Collective, Collectives
from ddp_lint.model.facts import Facts, Spot, called_name
from ddp_lint.model.frames import Frame
from ddp_lint.model.guards import RANKS, Audience
from ddp_lint.model.modules import Unit
from ddp_lint.model.processes import test_text
from ddp_lint.model.testing import is_to_fail
from ddp_lint.model.torch_api import INIT_GROUP
from ddp_lint.model.tree import Node, dotted, walk, walk_scope
from ddp_lint.model.wrappers import bindings_of

#: A program that sends anything says one of these somewhere.
_SENDING = re.compile(
    rb"torch\.distributed|from torch import distributed|accelerate|[Ff]abric|sync_dist"
    rb"|DataParallel|full_tensor|composer|mmengine"
)
Reached: TypeAlias = Callable[[nodes.Call, Frame], list[Collective]]


@dataclass(frozen=True)
class DividedCall(Spot):
    """A call that only some ranks make, and the collective that it reaches."""

    audience: Audience
    collective: Collective

    @property
    def test_text(self) -> str:
        return test_text(self.facts, self.audience)

    @property
    def is_direct(self) -> bool:
        return self.collective.node is self.node

    @cached_property
    def where(self) -> str:
        """Where the collective is, for calls that only lead to it."""
        if self.is_direct:
            return ""
        place = self.facts.place(self.collective.node)
        return f", which calls `{self.collective.name}` at {place.path}:{place.line}"

    @property
    def places(self) -> tuple[Related, ...]:
        found = []
        if self.audience.test is not None:
            found.append(self.facts.related(self.audience.test, "this keeps the other ranks away"))
        for call in self.collective.chain:
            found.append(self.facts.related(call, f"`{called_name(call)}` is called here"))
        if not self.is_direct and not self.collective.chain:
            found.append(self.facts.related(self.collective.node, "the collective is here"))
        return tuple(found)


@dataclass(frozen=True)
class BarLoop(Spot):
    """A loop that ends when a progress bar is full, and the bar is off on some ranks."""

    bar: Node
    test: Node

    @property
    def places(self) -> tuple[Related, ...]:
        return (
            self.facts.related(self.test, "the bar is off on the other ranks and counts nothing"),
        )


def divided_calls(facts: Facts) -> Iterator[DividedCall]:
    """Collectives under a guard that keeps some ranks away from them."""
    if not any(module.source.mentions(_SENDING) for module in facts.modules):
        return
    sending = facts.once(Collectives)
    for unit in facts.units:
        if any(sending.may_make(call) for call in unit.calls):
            yield from divided(facts, unit, sending.reached, sending.may_make)


def divided(
    facts: Facts,
    unit: Unit,
    reached: Reached,
    may_reach: Callable[[nodes.Call], bool] = lambda call: True,
) -> Iterator[DividedCall]:
    """Calls of ``unit`` under its own guards that reach what the other ranks reach less often."""
    only = _decorated(facts, unit)
    guarded = [(call, _here(facts, call, only)) for call in unit.calls if may_reach(call)]
    found = [
        (call, who, ones)
        for call, who in guarded
        if not _is_even(who) and (ones := reached(call, Frame(unit)))
    ]
    counts: dict[str, list[int]] = defaultdict(lambda: [0] * len(RANKS))
    unsure: set[str] = set()
    for _, who, ones in found:
        for one in ones:
            for index, truth in enumerate(who.reached):
                counts[one.name][index] += truth is True
            if None in who.reached:
                unsure.add(one.name)
    for call, who, ones in found:
        if None in who.reached or True not in who.reached or _is_inside(call, found):
            continue
        if facts.ranks.audience(call).reached in facts.once(_members):
            continue  # ranks that never joined the group are not asked
        if is_to_fail(call):
            continue  # a test sees to it that the others are missed
        for one in ones:
            if one.name not in unsure and len(set(counts[one.name])) > 1:
                yield DividedCall(facts, call, who, one)
                break


def _members(facts: Facts) -> set[tuple[bool | None, ...]]:
    """Who makes the process group, for each place that makes one."""
    return {facts.ranks.audience(call).reached for call, _ in facts.calls_to(INIT_GROUP)}


def _is_even(who: Audience) -> bool:
    return len(set(who.reached)) == 1


def _is_inside(
    call: nodes.Call, found: list[tuple[nodes.Call, Audience, list[Collective]]]
) -> bool:
    """An argument of another call that is reported already."""
    at = call.parent
    while at is not None and not at.is_statement:
        if any(at is other for other, _, _ in found):
            return True
        at = at.parent
    return False


def _here(facts: Facts, call: nodes.Call, only: Audience | None) -> Audience:
    own = facts.ranks.own(call)
    if only is None:
        return own
    reached = tuple(
        False if False in (a, b) else None if None in (a, b) else True
        for a, b in zip(own.reached, only.reached, strict=True)
    )
    return Audience(reached, own.test or only.test)


def _decorated(facts: Facts, unit: Unit) -> Audience | None:
    """Who runs a function by its decorator alone."""
    for decorator, name in zip(unit.decorators, unit.decorator_names, strict=True):
        kind = facts.guards.kind_of_decorator(name)
        if kind is not None:
            return Audience(tuple(bool(rank.number(kind)) for rank in RANKS), decorator)
    return None


def bar_loops(facts: Facts) -> Iterator[BarLoop]:
    """``while bar.n < bar.total`` where the bar is disabled by rank."""
    sending = facts.once(Collectives)
    for unit in facts.units:
        for loop in unit.loops:
            if not isinstance(loop, nodes.While):
                continue
            for node in walk(loop.test):
                if isinstance(node, nodes.Attribute) and node.attrname in ("n", "total"):
                    test = _disabled_by_rank(facts, node.expr)
                    if test is not None and _sends(sending, loop, unit):
                        yield BarLoop(facts, loop, node.expr, test)
                        break


def _disabled_by_rank(facts: Facts, bar: Node) -> Node | None:
    if not isinstance(bar, nodes.Name):
        return None
    for binding, _ in bindings_of(facts, bar):
        call = binding.value
        if isinstance(call, nodes.Call) and dotted(call.func).rpartition(".")[2] == "tqdm":
            for keyword in call.keywords:
                if keyword.arg == "disable" and facts.guards.depends_on_rank(keyword.value):
                    return keyword.value
    return None


def _sends(sending: Collectives, loop: nodes.While, unit: Unit) -> bool:
    calls = [node for node in walk_scope(loop) if isinstance(node, nodes.Call)]
    return any(
        sending.direct(call) is not None
        or sending.is_wrapped_forward(call)
        or any(sending.may_reach(target) for target in sending.facts.graph.targets_of(call))
        for call in calls
    )
