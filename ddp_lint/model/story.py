"""Layer 10, story: what a program runs from its start on, in order, as far as it matters here.

The calls that set a process up, build, wrap, save, load, send and tear down are told in the order
in which they run, functions entered.  Loops are told once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from astroid import nodes

from ddp_lint.model.facts import Facts
from ddp_lint.model.frames import Frame
from ddp_lint.model.modules import Unit
from ddp_lint.model.roles import role_of_name
from ddp_lint.model.torch_api import (
    COLLECTIVES,
    DESTROY_GROUP,
    DISTRIBUTED_MAKERS,
    INIT_GROUP,
    SET_DEVICE,
)

_NAMES = COLLECTIVES | DESTROY_GROUP | DISTRIBUTED_MAKERS | INIT_GROUP | SET_DEVICE
_NAMES |= {"torch.load", "torch.save", "torch.jit.save", "safetensors.torch.save_file"}
_METHODS = frozenset(
    {"load_state_dict", "cuda", "to", "backward", "save_pretrained", "from_pretrained", "prepare",
     "wait_for_everyone", "barrier", "gather", "gather_for_metrics", "reduce", "all_gather"}
)  # fmt: skip
_MOST_EVENTS = 4000
_MOST_VISITS = 3
_DEEPEST = 10


@dataclass(frozen=True, eq=False)
class Event:
    """A call in one frame, and its place in the story."""

    call: nodes.Call
    frame: Frame
    number: int

    @property
    def chain(self) -> tuple[nodes.Call, ...]:
        return self.frame.chain


class Story:
    """The stories of one program: one from each of its starts."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self._matters: dict[int, bool] = {}
        self._plots: dict[int, list[nodes.Call | nodes.With]] = {}
        self.tellings: list[list[Event]] = [self._tell(start) for start in self._starts()]

    def _starts(self) -> Iterator[Unit]:
        for unit in self.facts.units:
            sites = self.facts.graph.sites_of(unit)
            if not unit.is_function:
                if unit.module in self.facts.graph.roots:
                    yield unit
            elif any(site.spawned for site in sites) or (
                not sites
                and unit.module in self.facts.graph.roots
                and self.matters(unit)
                and self.facts.ranks.is_run(unit)
            ):
                yield unit

    def _tell(self, start: Unit) -> list[Event]:
        told: list[Event] = []
        self._enter(Frame(start), told, {}, 0)
        return told

    def _enter(self, frame: Frame, told: list[Event], visits: dict[int, int], depth: int) -> None:
        for node in self._plot(frame.unit):
            if len(told) > _MOST_EVENTS:
                return
            if isinstance(node, nodes.With):
                # What a context manager does at the end, told once more in its place.
                for item, _ in node.items:
                    if isinstance(item, nodes.Call) and depth < _DEEPEST:
                        self._follow(item, frame, told, visits, depth)
                continue
            if depth < _DEEPEST:
                self._follow(node, frame, told, visits, depth)
            if self._is_told(node):
                told.append(Event(node, frame, len(told)))

    def _plot(self, unit: Unit) -> list[nodes.Call | nodes.With]:
        """The calls of a function that matter, and its context managers, as they are run."""
        known = self._plots.get(id(unit))
        if known is None:
            body = unit.node.body
            known = self._plots[id(unit)] = [
                node
                for statement in (body if isinstance(body, list) else [body])
                for node in self.facts.steps.sequence(statement)
                if isinstance(node, nodes.With)
                or (
                    isinstance(node, nodes.Call)
                    and (
                        self._is_told(node)
                        or any(self.matters(t) for t in self.facts.graph.targets_of(node))
                    )
                )
            ]
        return known

    def _follow(
        self,
        call: nodes.Call,
        frame: Frame,
        told: list[Event],
        visits: dict[int, int],
        depth: int,
    ) -> None:
        for target in self.facts.graph.targets_of(call):
            if not target.is_function or frame.enters(target):
                continue
            if visits.get(id(target), 0) >= _MOST_VISITS:
                continue
            if self.matters(target):
                visits[id(target)] = visits.get(id(target), 0) + 1
                inside = Frame(target, serial=f"#{len(told)}", call=call, caller=frame)
                self._enter(inside, told, visits, depth + 1)

    def matters(self, unit: Unit) -> bool:
        """Whether anything that is told happens in a function, or in one that it calls."""
        known = self._matters.get(id(unit))
        if known is not None:
            return known
        self._matters[id(unit)] = False
        self._matters[id(unit)] = found = any(
            self._is_told(call)
            or any(self.matters(target) for target in self.facts.graph.targets_of(call))
            for call in unit.calls
        )
        return found

    def _is_told(self, call: nodes.Call) -> bool:
        func = call.func
        if isinstance(func, nodes.Attribute) and func.attrname in _METHODS:
            return True
        return any(
            name in _NAMES or role_of_name(name) == "optimizer" for name in self.facts.names(call)
        )

    # -- asking -----------------------------------------------------------------------------

    def events(self) -> Iterator[Event]:
        for telling in self.tellings:
            yield from telling

    def comes_before(self, first: nodes.Call, second: nodes.Call) -> bool | None:
        """Whether ``first`` happens before ``second`` ever does; None if they never meet."""
        for telling in self.tellings:
            here = next((e.number for e in telling if e.call is first), None)
            there = next((e.number for e in telling if e.call is second), None)
            if here is not None and there is not None:
                return here < there
        return None
