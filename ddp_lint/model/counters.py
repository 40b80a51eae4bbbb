"""Layer 8, counters: what says which step it is, and flags that fall after the first time.

A counter is the target of the loop, or what each iteration moves on by a number, be it a name,
an attribute, or what a caller passes of either.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from astroid import nodes

from ddp_lint.model.flow import bindings_for
from ddp_lint.model.modules import Binding, Unit
from ddp_lint.model.origins import Instance
from ddp_lint.model.steps import StepLoop
from ddp_lint.model.tree import Node, dotted, is_within, statement, walk

if TYPE_CHECKING:
    from ddp_lint.model.facts import Facts

_DEEPEST = 4
_COUNTED = re.compile(r"^(i|it|n)$|step|iter|idx|index|batch_i|count", re.I)
#: What frameworks call the number of the step at hand; ``max_steps`` is none.
_NAMES_A_STEP = re.compile(r"^((global|current|cur)_?)?(step|iter|iteration)$")
#: Comparisons that hold at a few steps, however often the counter is moved on.
_PICKING = ("==", "in")
_ORDERING = (">", ">=", "<", "<=")
#: Bounds that a counter comes to at the end, or that say how far apart two steps are.
_NO_START = re.compile(
    r"(?<![a-z])(max\w*|total|last|end|len|num|n|stop|final|limit|every|interval|freq|period"
    r"|patience|next|per)(?![a-z])",
    re.I,
)


def asks_for_the_step(facts: Facts, test: nodes.Compare, loop: StepLoop) -> bool:
    """A comparison of the loop's own counter: ``i == 0``, ``self.step in marks``."""
    if len(test.ops) != 1 or test.ops[0][0] in ("is", "is not"):
        return False
    op, right = test.ops[0]
    return any(
        _counts(facts, part, loop, op in _PICKING)
        for side in (test.left, right)
        for part in walk(side)
        if isinstance(part, nodes.Name | nodes.Attribute)
    )


def holds_from_then_on(facts: Facts, test: Node, holds: bool, loop: StepLoop) -> bool:
    """``self.steps > start``: once the loop's counter is past a bound that stays where it is, it
    is so for the rest of the run.  ``holds`` is how the comparison has to come out."""
    if not isinstance(test, nodes.Compare) or len(test.ops) != 1:
        return False
    op, right = test.ops[0]
    if op not in _ORDERING:
        return False
    return ((op[0] == ">") is holds and _passes(facts, test.left, right, loop)) or (
        (op[0] == "<") is holds and _passes(facts, right, test.left, loop)
    )


def _passes(facts: Facts, counter: Node, start: Node, loop: StepLoop) -> bool:
    """Whether ``counter`` only grows, and ``start`` is not moved on with it, nor near the end."""
    if not isinstance(counter, nodes.Name | nodes.Attribute) or _NO_START.search(
        start.as_string()
    ):
        return False
    if not _counts(facts, counter, loop, picks=False):
        return False
    moved = [one for one in stores(facts, counter) if _is_in_step(one[0], loop)]
    return all(added(binding) is not None for binding, _ in moved) and not any(
        _is_in_step(binding, loop)
        for part in walk(start)
        if isinstance(part, nodes.Name | nodes.Attribute)
        for binding, _ in stores(facts, part)
    )


def _is_in_step(binding: Binding, loop: StepLoop) -> bool:
    """Whether an iteration makes this assignment."""
    return id(statement(binding.node)) in loop.stores


def _counts(facts: Facts, node: nodes.Name | nodes.Attribute, loop: StepLoop, picks: bool) -> bool:
    if picks and names_a_step(node):
        return True
    return any(
        is_counter_of(loop.node, binding) or _is_moved_on(facts, binding, loop, picks)
        for binding, _ in stores(facts, node)
    )


def names_a_step(node: Node) -> bool:
    """``state.global_step``: by what frameworks call it."""
    return isinstance(node, nodes.Attribute) and bool(_NAMES_A_STEP.search(node.attrname))


def is_counter_of(loop: Node, binding: Binding) -> bool:
    """Whether a binding is the counter of a ``for`` loop: of a range, or of ``enumerate``."""
    if not isinstance(loop, nodes.For) or not is_within(binding.node, loop.target):
        return False
    call = loop.iter
    if not isinstance(call, nodes.Call):
        return False
    name = dotted(call.func).rpartition(".")[2]
    if name in ("range", "trange"):
        return binding.path == ("iter",)
    # A generator of the project's own may count as ``enumerate`` does.
    return binding.path == ("iter", 0) and (
        name == "enumerate" or _COUNTED.search(binding.name) is not None
    )


def _is_moved_on(facts: Facts, binding: Binding, loop: StepLoop, picks: bool) -> bool:
    """Whether the iteration adds a number to it: each one, unless the test picks single values."""
    number = added(binding)
    if number is None or not facts.tensors.on_host(number):
        return False
    at = statement(binding.node)
    if at.parent is loop.node:
        return True
    happenings = loop.stores.get(id(at), ())
    return bool(happenings) and (
        picks or any(not any(loop.conditions_of(happening)) for happening in happenings)
    )


def added(binding: Binding) -> Node | None:
    """What is added: ``1`` of ``step += 1`` and of ``step = step + 1``."""
    value = binding.value
    if binding.path == ("aug",) and isinstance(value, nodes.AugAssign):
        return value.value if value.op == "+=" else None
    if (
        binding.path == ()
        and isinstance(value, nodes.BinOp)
        and value.op == "+"
        and dotted(value.left) == dotted(binding.node) != ""
    ):
        return value.right
    return None


def stores(
    facts: Facts, node: nodes.Name | nodes.Attribute, depth: int = 0
) -> Iterator[tuple[Binding, Unit]]:
    """What gives a name or an attribute its value; of a parameter, what the names and
    attributes get that are passed for it."""
    for binding, unit in bound(facts, node):
        if binding.path != ("param",) or depth > _DEEPEST:
            yield binding, unit
            continue
        for site in facts.graph.sites_of(unit):
            given = facts.graph.given(site, unit, binding.name)
            if isinstance(given, nodes.Name | nodes.Attribute):
                yield from stores(facts, given, depth + 1)


def bound(facts: Facts, node: nodes.Name | nodes.Attribute) -> Iterator[tuple[Binding, Unit]]:
    """What a name may be bound to at this place, and what is kept in an object's attribute."""
    if isinstance(node, nodes.Attribute):
        yield from _kept(facts, node)
        return
    found, unit = bindings_for(node, facts.values.unit_of(node))
    if unit is not None:
        yield from ((binding, unit) for binding in found)


def _kept(facts: Facts, node: nodes.Attribute) -> Iterator[tuple[Binding, Unit]]:
    """What the class of an object, or the code that has one, puts into an attribute."""
    kin = [
        cls
        for origin in facts.origins(node.expr)
        if isinstance(origin, Instance)
        for cls in (*facts.values.mro(origin.cls), *facts.values.all_below(origin.cls))
    ]
    if not kin:
        return
    for cls in kin:
        yield from ((binding, unit) for unit, binding in cls.attributes.get(node.attrname, ()))
    for module in facts.modules:
        for unit, owner, binding in module.attribute_stores.get(node.attrname, ()):
            is_own = unit.self_name is not None and dotted(owner) == unit.self_name
            if not is_own and any(
                isinstance(o, Instance) and o.cls in kin for o in facts.origins(owner)
            ):
                yield binding, unit
