"""Layer 2, flow: within one unit, what encloses a node, under which conditions, before what.

Structure is read from the tree: branches, loops, early exits.  That is less than a control-flow
graph and enough for training loops, where people write structured code.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from astroid import nodes

from ddp_lint.model.memory import remembered
from ddp_lint.model.modules import Binding, Unit
from ddp_lint.model.tree import (
    COMPREHENSIONS,
    LOOPS,
    SCOPES,
    Loop,
    Node,
    ancestors,
    dotted,
    is_within,
    position,
)

_EXIT_CALLS = frozenset({"sys.exit", "exit", "quit", "os._exit", "os.abort"})


@dataclass(frozen=True)
class Condition:
    """``test`` has to be ``holds`` for a node to be reached.

    ``exit`` is the statement that leaves early otherwise, where that is how it comes about.
    """

    test: Node
    holds: bool
    exit: Node | None = None


def arm_of(parent: Node, child: Node) -> str:
    """In which part of a compound statement ``child`` stands: "body", "orelse", "test"..."""
    for part in ("body", "orelse", "finalbody", "handlers"):
        within = getattr(parent, part, None)
        if isinstance(within, list):
            for index, one in enumerate(within):
                if one is child:
                    return f"handlers{index}" if part == "handlers" else part
        elif within is child:
            return part
    return "test"


@remembered
def blocks(node: Node) -> tuple[tuple[Node, str], ...]:
    """The branches and loops around ``node`` in its unit, innermost first, each with the arm."""
    return tuple(
        (parent, arm_of(parent, child))
        for child, parent in ancestors(node)
        if isinstance(parent, nodes.If | nodes.For | nodes.While | nodes.Try | nodes.MatchCase)
    )


def loops_around(node: Node) -> Iterator[Loop]:
    """The loops whose body runs ``node`` again and again, innermost first."""
    for parent, arm in blocks(node):
        if isinstance(parent, LOOPS) and (
            arm == "body" or (isinstance(parent, nodes.While) and arm == "test")
        ):
            yield parent


def exclusive(first: Node, second: Node) -> bool:
    """Whether no single pass can run both: they stand in different arms of one branch."""
    arms = dict(blocks(first))
    for parent, arm in blocks(second):
        other = arms.get(parent)
        if other is None or other == arm:
            continue
        if isinstance(parent, nodes.If) and {arm, other} == {"body", "orelse"}:
            return True
        if (
            isinstance(parent, nodes.Try)
            and arm.startswith("handlers")
            and other.startswith("handlers")
        ):
            return True
    return isinstance(first.parent, nodes.IfExp) and first.parent is second.parent


def dominates(first: Node, second: Node) -> bool:
    """Whether ``first``, standing earlier, has run whenever ``second`` runs."""
    around = blocks(second)
    for parent, arm in blocks(first):
        if isinstance(parent, nodes.Try) and arm in ("body", "finalbody"):
            continue
        if isinstance(parent, nodes.If) and arm == "test":
            continue
        if (parent, arm) not in around:
            return False
    return True


def always_exits(body: list[Node]) -> Node | None:
    """The statement by which every way through ``body`` leaves the block, if there is one."""
    if not body:
        return None
    last = body[-1]
    if isinstance(last, nodes.Return | nodes.Raise | nodes.Continue | nodes.Break):
        return last
    if isinstance(last, nodes.Expr) and isinstance(last.value, nodes.Call):
        return last if dotted(last.value.func) in _EXIT_CALLS else None
    if isinstance(last, nodes.If) and last.orelse:
        if always_exits(last.body) and always_exits(last.orelse):
            return last
        return None
    if isinstance(last, nodes.With):
        return always_exits(last.body)
    return None


@remembered
def conditions(node: Node) -> tuple[Condition, ...]:
    """Everything that has to hold in this unit for ``node`` to be reached, innermost first."""
    found: list[Condition] = []
    for child, parent in ancestors(node):
        if isinstance(parent, nodes.If):
            arm = arm_of(parent, child)
            if arm == "body":
                found.append(Condition(parent.test, True))
            elif arm == "orelse":
                found.append(Condition(parent.test, False))
        elif isinstance(parent, nodes.IfExp):
            if child is parent.body:
                found.append(Condition(parent.test, True))
            elif child is parent.orelse:
                found.append(Condition(parent.test, False))
        elif isinstance(parent, nodes.While) and arm_of(parent, child) == "body":
            found.append(Condition(parent.test, True))
        elif isinstance(parent, nodes.BoolOp):
            for value in parent.values:
                if value is child:
                    break
                found.append(Condition(value, parent.op == "and"))
        found.extend(_earlier_exits(parent, child))
    return tuple(found)


def _earlier_exits(parent: Node, child: Node) -> Iterator[Condition]:
    for part in ("body", "orelse", "finalbody"):
        within = getattr(parent, part, None)
        if not isinstance(within, list) or not any(one is child for one in within):
            continue
        for sibling in within:
            if sibling is child:
                return
            if isinstance(sibling, nodes.If):
                yield from _ways_past(sibling)


@remembered
def _ways_past(branch: nodes.If) -> tuple[Condition, ...]:
    """What has to hold for the statement after an ``if`` and its ``elif`` arms to be reached:
    for each arm that leaves, one of the arms before it was taken, or its own test failed."""
    found: list[Condition] = []
    taken: list[tuple[Node, bool]] = []
    arm = branch
    while True:
        if leaves := always_exits(arm.body):
            found.append(_one_of(branch, [*taken, (arm.test, False)], leaves))
        else:
            taken.append((arm.test, True))
        if arm.orelse and (leaves := always_exits(arm.orelse)):
            if taken:
                found.append(_one_of(branch, taken, leaves))
            return tuple(found)
        match arm.orelse:
            case [nodes.If() as arm]:
                pass
            case _:
                return tuple(found)


def _one_of(branch: nodes.If, tests: list[tuple[Node, bool]], leaves: Node) -> Condition:
    """That one of these tests comes out as said; where they are several, in one expression."""
    if len(tests) == 1:
        return Condition(*tests[0], leaves)
    first, last = tests[0][0], tests[-1][0]
    whole = nodes.BoolOp(
        "or",
        first.lineno,
        first.col_offset,
        branch,
        end_lineno=last.end_lineno,
        end_col_offset=last.end_col_offset,
    )
    whole.postinit([test if holds else _denied(test, branch) for test, holds in tests])
    return Condition(whole, True, leaves)


def _denied(test: Node, branch: nodes.If) -> Node:
    negation = nodes.UnaryOp(
        "not",
        test.lineno or 0,
        test.col_offset or 0,
        branch,
        end_lineno=test.end_lineno,
        end_col_offset=test.end_col_offset,
    )
    negation.postinit(test)
    return negation


def with_items(node: Node) -> Iterator[tuple[Node, nodes.With]]:
    """The context managers around ``node`` in its unit, innermost first."""
    for child, parent in ancestors(node):
        if isinstance(parent, nodes.With) and any(child is one for one in parent.body):
            for expression, _ in reversed(parent.items):
                yield expression, parent


def reaching(unit: Unit, name: str, use: Node) -> list[Binding]:
    """The bindings of ``name`` in ``unit`` whose value ``use`` may see.

    The nearest one that has certainly run, those on other ways that may have run since, and,
    in a loop, those of the iteration before.
    """
    every = unit.bindings.get(name, [])
    if len(every) <= 1:
        return list(every)
    scoped = _in_comprehension(every, use)
    if scoped is not None:
        return [scoped]
    where = position(use)
    plain = [b for b in every if not _of_comprehension(b)]
    if len(plain) > 40:  # generated code: the nearest ones say enough
        plain = [b for b in plain if b.at <= where][-40:] or plain[:40]
    before = [b for b in plain if b.at <= where and not _inside_own_value(b, use)]
    found: list[Binding] = []
    dominant: Binding | None = None
    for binding in sorted(before, key=lambda b: b.at, reverse=True):
        if exclusive(binding.node, use):
            continue
        found.append(binding)
        if binding.path[-1:] != ("aug",) and dominates(_effective(binding), use):
            dominant = binding
            break
    for loop in loops_around(use):
        if dominant is not None and is_within(dominant.node, loop):
            break
        for binding in plain:
            if (
                binding not in found
                and is_within(binding.node, loop)
                and not _target_of(binding, loop)
            ):
                found.append(binding)
    return found or plain


def _effective(binding: Binding) -> Node:
    """The node whose blocks say where a binding holds: a loop's target holds in its body."""
    at: Node | None = binding.node
    while at is not None and not at.is_statement:
        at = at.parent
    if isinstance(at, nodes.For) and at.body and is_within(binding.node, at.target):
        return at.body[0]
    return binding.node


def _target_of(binding: Binding, loop: Node) -> bool:
    return isinstance(loop, nodes.For) and is_within(binding.node, loop.target)


def _inside_own_value(binding: Binding, use: Node) -> bool:
    return (
        binding.value is not None
        and binding.value is not binding.node
        and (is_within(use, binding.value) and not isinstance(binding.value, SCOPES))
    )


def _of_comprehension(binding: Binding) -> bool:
    at: Node | None = binding.node
    while at is not None and not at.is_statement:
        if isinstance(at, nodes.Comprehension):
            return True
        at = at.parent
    return False


def _in_comprehension(every: list[Binding], use: Node) -> Binding | None:
    """The binding by a comprehension around ``use``, which hides those outside it."""
    for _, parent in ancestors(use):
        if isinstance(parent, COMPREHENSIONS):
            for binding in every:
                if is_within(binding.node, parent) and not is_within(use, _iter_of(binding)):
                    return binding
    return None


def _iter_of(binding: Binding) -> Node:
    return binding.value if binding.value is not None else binding.node


def bindings_for(
    name: nodes.Name | nodes.AssignName, unit: Unit
) -> tuple[list[Binding], Unit | None]:
    """What a name in ``unit`` may be bound to at its place, and the unit that binds it: its own,
    or the nearest one around."""
    at: Unit | None = unit
    while at is not None:
        if name.name in at.bindings:
            found = reaching(at, name.name, name) if at is unit else at.bindings[name.name]
            return found, at
        at = at.outer
    return [], None


def parts_of(test: Node, holds: bool) -> Iterator[tuple[Node, bool]]:
    """The tests that all have to come out as said for ``test`` to come out as ``holds``."""
    if isinstance(test, nodes.BoolOp) and (test.op == "and") is holds:
        for value in test.values:
            yield from parts_of(value, holds)
    elif isinstance(test, nodes.UnaryOp) and test.op == "not":
        yield from parts_of(test.operand, not holds)
    else:
        yield test, holds
