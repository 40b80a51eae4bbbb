"""Subject: reads of a step that may be put off until its loop is through: all of them, or none.

A read that stays waits for all that was queued before it, and with that for what the others
would have waited for: to put off only some of a step's reads buys nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from astroid import nodes

from ddp_lint.finding import Fix
from ddp_lint.model.branching import decisions_in
from ddp_lint.model.deferring import Sum, deferred, edits_for
from ddp_lint.model.facts import Facts
from ddp_lint.model.steps import Happening, StepLoop
from ddp_lint.model.syncs import HostRead, StepSpot, reads_in
from ddp_lint.model.tree import Node, statement
from ddp_lint.model.waiting import waits_in


class Deferrals:
    """What the step loops of one program can put off of ``host_reads``."""

    def __init__(self, facts: Facts, host_reads: Iterable[HostRead]) -> None:
        self.facts = facts
        self._sums: dict[StepLoop, dict[Node, Sum]] = {}
        self._reads: dict[StepLoop, list[HostRead]] = {}
        self._fixes: dict[StepLoop, Fix | None] = {}
        for read in host_reads:
            found = _sum_of(read)
            if found is not None:
                self._sums.setdefault(read.loop, {})[statement(read.node)] = found
                self._reads.setdefault(read.loop, []).append(read)

    def of(self, read: HostRead) -> Fix | None:
        """``total += loss.item()`` becomes ``total += loss.detach()``, and the sum a number
        behind the loop, where nothing asks for it before; so do the other sums of the loop."""
        loop = read.loop
        if not self._puts_off(read):
            return None
        if loop not in self._fixes:
            self._fixes[loop] = None if self._waits_anyway(loop) else self._fix(loop)
        return self._fixes[loop]

    def _puts_off(self, read: HostRead) -> bool:
        sums = self._sums.get(read.loop, {})
        return not read.happening.chain and statement(read.node) in sums

    def _fix(self, loop: StepLoop) -> Fix:
        sums = self._sums[loop].values()
        title = f"Keep the {'sum' if len(sums) == 1 else 'sums'} on the device"
        return Fix(title, edits_for(self.facts, sums), safe=False)

    def _waits_anyway(self, loop: StepLoop) -> bool:
        """Whether an iteration waits for the device as it does now if its sums do not."""
        if any(
            _is_unconditional(read) and not self._puts_off(read)
            for read in reads_in(self.facts, loop)
        ):
            return True
        phase = _phases(loop)
        near = {phase[read.happening] for read in self._reads[loop]}
        return any(
            phase[other.happening] in near and _is_unconditional(other)
            for other in self._other_waits(loop)
        )

    def _other_waits(self, loop: StepLoop) -> Iterator[StepSpot]:
        """Decisions on values of the device, and explicit waits that something needs."""
        yield from decisions_in(self.facts, loop)
        yield from (wait for wait in waits_in(self.facts, loop) if wait.removal is None)


def _sum_of(read: HostRead) -> Sum | None:
    if read.how != ".item()" or read.happening.chain or read.need != "look":
        return None
    return deferred(read.facts, read.loop, read.node, read.value)


def _is_unconditional(spot: StepSpot) -> bool:
    often = spot.facts.how_often(spot.loop, spot.happening)
    return often == "every step" and not spot.ruled_out


def _phases(loop: StepLoop) -> dict[Happening, int]:
    """How many backward passes and optimizer steps come before what an iteration runs.  Where
    they are as many, the device has next to nothing to do between two waits."""
    steps, phase = loop.steps, 0
    found: dict[Happening, int] = {}
    for happening in loop.happenings:
        found[happening] = phase
        call = happening.node
        if isinstance(call, nodes.Call) and (
            steps.is_backward(call) or steps.is_optimizer_step(call)
        ):
            phase += 1
    return found
