"""Layer 10, arms: branches that a training step does not take on the way that is looked at, and
calls that interrupt it."""

from __future__ import annotations

from collections.abc import Iterator

from astroid import nodes

from ddp_lint.model.constants import truth
from ddp_lint.model.facts import Facts
from ddp_lint.model.feeding import without_gradients
from ddp_lint.model.flow import parts_of
from ddp_lint.model.modules import Unit
from ddp_lint.model.phases import is_of_tests
from ddp_lint.model.steps import Happening, StepLoop


def is_ruled_out(facts: Facts, loop: StepLoop, happening: Happening) -> bool:
    """Whether a condition along the chain cannot hold in a training step: what the calls pass
    decides it, it asks for an evaluation, or the backward pass stands in the other arm."""
    entered = {id(unit): call for call, unit in _entered(happening)}
    others = _other_arms(loop)
    for condition, unit in loop.conditions_of(happening):
        known = truth(facts, condition.test, unit, entered.get(id(unit)))
        if known is not None and known is not condition.holds:
            return True
        if is_of_tests(condition.test, condition.holds):
            return True
        if any((part.as_string(), holds, id(unit)) in others
               for part, holds in parts_of(condition.test, condition.holds)):  # fmt: skip
            return True
    return False


def evaluates(facts: Facts, happening: Happening) -> bool:
    """Whether this happens in a function that is called to evaluate the model between two steps:
    it switches a model over, and records no gradients.  Where a step is an epoch over all data at
    once, such a call stands beside the backward pass."""
    return any(
        not facts.steps.reaches_backward(unit) and any(map(_switches_over, unit.calls))
        for _, unit in _entered(happening)
    ) and without_gradients(facts, happening)


def _switches_over(call: nodes.Call) -> bool:
    """``model.eval()``"""
    return getattr(call.func, "attrname", "") == "eval" and not call.args


def _entered(happening: Happening) -> Iterator[tuple[nodes.Call, Unit]]:
    """Each call of the chain with the unit that it enters."""
    chain = happening.chain
    if chain:
        calls = [call for call, _ in chain]
        inner = [unit for _, unit in chain[1:]]
        yield from zip(calls, [*inner, happening.unit], strict=True)


def _other_arms(loop: StepLoop) -> frozenset[tuple[str, bool, int]]:
    """What holds nowhere a backward pass of the loop runs: each of them needs the opposite."""
    found: list[frozenset[tuple[str, bool, int]]] = []
    for backward in loop.backwards:
        found.append(
            frozenset(
                (part.as_string(), not holds, id(unit))
                for condition, unit in loop.conditions_of(backward)
                for part, holds in parts_of(condition.test, condition.holds)
            )
        )
    return frozenset.intersection(*found) if found else frozenset()
