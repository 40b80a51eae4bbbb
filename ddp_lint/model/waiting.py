"""Subject: where a training step waits for the device, or for the other ranks, and what for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from astroid import nodes

from ddp_lint.finding import Fix
from ddp_lint.model.facts import Facts
from ddp_lint.model.steps import StepLoop
from ddp_lint.model.syncs import StepSpot, step_loops
from ddp_lint.model.torch_api import BARRIERS, SYNCHRONIZE
from ddp_lint.model.tree import Node, ancestors, block_of, dotted, precedes, statement, walk

_CLOCKS = ("time.time", "perf_counter", "monotonic", "perf_counter_ns", "time_ns", "process_time")
#: What reads a clock by what it is called: ``meter.iter_toc()``, ``timer.stop()``.
_TIMER = re.compile(r"(^|[._])(tic|toc|tick|tock|lap|timer|stopwatch)([._]|$)", re.I)


@dataclass(frozen=True)
class Wait(StepSpot):
    """``torch.cuda.synchronize()`` or ``dist.barrier()`` in one iteration of a step loop."""

    @property
    def clock(self) -> Literal["events", "host"] | None:
        """What is read right after it, and would be wrong without it."""
        for after in _next_statements(self.node):
            names = [dotted(n.func) for n in walk(after) if isinstance(n, nodes.Call)]
            if any(name.endswith("elapsed_time") for name in names):
                return "events"
            if any(name.endswith(_CLOCKS) or _TIMER.search(name) for name in names):
                return "host"
        return None

    @property
    def removal(self) -> Fix | None:
        """None where the next line would raise, or tell a time that nothing took, and where one
        rank did something just before that the others may wait for."""
        if self.clock is not None or (self._is_barrier and self._comes_after_a_guard):
            return None
        return super().removal

    @property
    def _is_barrier(self) -> bool:
        return not self.facts.names(self.happening.call) & SYNCHRONIZE

    @property
    def _comes_after_a_guard(self) -> bool:
        block = block_of(statement(self.node))
        return any(
            isinstance(other, nodes.If)
            and precedes(other, self.node)
            and self.facts.kind_of_test(other.test, self.loop) == "rank"
            for other in block
        )

    @property
    def is_question(self) -> bool:
        """Whether its failure is an answer: that a rank has no data left."""
        call = self.node
        if isinstance(call, nodes.Call) and dotted(call.func).endswith("monitored_barrier"):
            return True
        at = statement(self.node)
        return isinstance(at.parent, nodes.Try) and at.parent.body == [at]


def waits(facts: Facts) -> Iterator[Wait]:
    """The waits of all step loops."""
    for loop in step_loops(facts):
        yield from waits_in(facts, loop)


def waits_in(facts: Facts, loop: StepLoop) -> Iterator[Wait]:
    """The waits of one iteration of a step loop."""
    for happening in loop.happenings:
        node = happening.node
        if not isinstance(node, nodes.Call):
            continue
        if facts.names(node) & (SYNCHRONIZE | BARRIERS) or _waits_by_library(facts, node.func):
            yield Wait(facts, node, loop, happening)


def _waits_by_library(facts: Facts, func: Node) -> bool:
    return (
        isinstance(func, nodes.Attribute)
        and func.attrname in ("wait_for_everyone", "barrier")
        and bool(facts.roles_of(func.expr) & {"accelerator", "fabric"})
    )


def _next_statements(node: Node) -> Iterator[Node]:
    """The statement after that of ``node``, and the one after the branch that it ends."""
    at = statement(node)
    yield from _follower(at)
    for child, parent in ancestors(at):
        if not isinstance(parent, nodes.If) or any(_follower(child)):
            return
        yield from _follower(parent)


def _follower(at: Node) -> Iterator[Node]:
    block = block_of(at)
    index = next((i for i, one in enumerate(block) if one is at), len(block))
    yield from block[index + 1 : index + 2]
