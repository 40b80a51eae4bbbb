"""Layer 9, updates: whether a loop that runs backward trains, or wants the gradient itself.

A heat map, an attack and a measurement of memory run backward, too.
"""

from __future__ import annotations

from collections.abc import Iterator

from astroid import nodes

from ddp_lint.model.facts import Facts
from ddp_lint.model.modules import Unit
from ddp_lint.model.steps import StepLoop
from ddp_lint.model.tree import Node, dotted, walk, walk_scope


def updates_parameters(facts: Facts, loop: StepLoop) -> bool:
    """Whether parameters are updated in the loop or around it, or by the framework."""
    known = facts.once(_answers)
    if id(loop.node) not in known:
        known[id(loop.node)] = _updates(facts, loop)
    return known[id(loop.node)]


def _answers(facts: Facts) -> dict[int, bool]:
    """By the identity of loops, what has been found about them."""
    return {}


def _updates(facts: Facts, loop: StepLoop) -> bool:
    if loop.is_hook or facts.steps.loop_steps(loop.node):
        return True
    if any(facts.steps.loop_steps(outer) for outer, _ in loop.outer_loops):
        return True
    if any(_updates_by_hand(node) or _is_of_optimizer(node) for node in _run(facts, loop)):
        return True
    # Of a library's step the caller may do the rest, by another method of the same object.
    return _is_open(facts, loop.unit, set()) and any(
        facts.steps.is_optimizer_step(call)
        for cls in (facts.values.mro(loop.unit.owner) if loop.unit.owner else ())
        for method in cls.methods.values()
        for call in method.calls
    )


def _is_open(facts: Facts, unit: Unit, seen: set[int]) -> bool:
    """Whether a function, or one that calls it, is called by nobody that can be seen."""
    if not unit.is_function or id(unit) in seen:
        return False
    seen.add(id(unit))
    sites = facts.graph.sites_of(unit)
    return not sites or any(_is_open(facts, site.caller, seen) for site in sites)


def _run(facts: Facts, loop: StepLoop) -> Iterator[Node]:
    """What an iteration runs, in the loop and in the functions that it calls."""
    yield from walk_scope(loop.node)
    entered = {id(happening.unit): happening.unit for happening in loop.happenings}
    for unit in entered.values():
        if unit is not loop.unit:
            for statement in unit.statements:
                yield from walk_scope(statement)


def _updates_by_hand(node: Node) -> bool:
    """``weight -= rate * weight.grad``, ``weight.data.add_(weight.grad, alpha=-rate)``."""
    if isinstance(node, nodes.AugAssign):
        return node.op == "-=" and _mentions_gradient(node.value)
    return (
        isinstance(node, nodes.Call)
        and isinstance(node.func, nodes.Attribute)
        and node.func.attrname in ("add_", "sub_", "addcdiv_")
        and any(_mentions_gradient(argument) for argument in node.args)
    )


def _mentions_gradient(node: Node) -> bool:
    return any(isinstance(n, nodes.Attribute) and n.attrname == "grad" for n in walk(node))


def _is_of_optimizer(node: Node) -> bool:
    """``optimizer.zero_grad()``: who clears them means to take a step."""
    return (
        isinstance(node, nodes.Call)
        and isinstance(node.func, nodes.Attribute)
        and node.func.attrname == "zero_grad"
        and "optim" in dotted(node.func.expr).lower()
    )
