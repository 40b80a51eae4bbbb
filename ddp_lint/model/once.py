"""Layer 9, once: what a run does once, or at steps that are named one by one, though a loop
leads to it again and again."""

from __future__ import annotations

from astroid import nodes

from ddp_lint.model.counters import added, is_counter_of, names_a_step, stores
from ddp_lint.model.facts import Facts
from ddp_lint.model.flow import Condition, conditions, loops_around, parts_of
from ddp_lint.model.modules import Binding, Unit
from ddp_lint.model.tree import Node, elements, is_within, statement


def comes_once(facts: Facts, node: Node, loop: Node | None = None) -> bool:
    """Whether a condition around ``node`` holds once in a run; with a loop, one within it."""
    return any(
        _picks_steps(facts, part, wanted) or _turns_itself_off(facts, part, wanted, condition)
        for condition in conditions(node)
        if loop is None or is_within(condition.test, loop)
        for part, wanted in parts_of(condition.test, condition.holds)
    )


def in_named_iterations(node: Node, unit: Unit, loop: Node) -> bool:
    """Whether ``node`` runs in iterations of ``loop`` that are named one by one: ``if step == 0``
    of what counts them.  However long the loop is, those are a handful."""
    return any(
        _names_iterations(part, wanted, unit, loop)
        for condition in conditions(node)
        if is_within(condition.test, loop)
        for part, wanted in parts_of(condition.test, condition.holds)
    )


def _names_iterations(test: Node, wanted: bool, unit: Unit, loop: Node) -> bool:
    if not isinstance(test, nodes.Compare):
        return not wanted and _counts_iterations(test, unit, loop)  # ``if not step``
    if len(test.ops) != 1:
        return False
    op, right = test.ops[0]
    if op == ("in" if wanted else "not in"):
        listed = elements(right) if isinstance(right, nodes.BaseContainer) else []
        return (
            bool(listed)
            and _counts_iterations(test.left, unit, loop)
            and all(_stays(one, unit, loop) for one in listed)
        )
    return op == ("==" if wanted else "!=") and any(
        _counts_iterations(one, unit, loop) and _stays(other, unit, loop)
        for one, other in ((test.left, right), (right, test.left))
    )


def _counts_iterations(node: Node, unit: Unit, loop: Node) -> bool:
    """Whether a name is another number in each iteration: the counter of the loop, or one that
    each iteration moves on."""
    node = _without_shift(node)
    if not isinstance(node, nodes.Name):
        return False
    inside = [b for b in unit.bindings.get(node.name, ()) if is_within(b.node, loop)]
    return bool(inside) and all(
        is_counter_of(loop, binding)
        or (isinstance(added(binding), nodes.Const) and statement(binding.node).parent is loop)
        for binding in inside
    )


def _stays(node: Node, unit: Unit, loop: Node) -> bool:
    """Whether a value is certainly the same in all iterations: ``3``, ``last``, ``len(x) - 1``."""
    match node:
        case nodes.Const():
            return True
        case nodes.Name(name=name):
            return not any(is_within(b.node, loop) for b in unit.bindings.get(name, ()))
        case nodes.UnaryOp(operand=operand):
            return _stays(operand, unit, loop)
        case nodes.BinOp(left=left, right=right):
            return _stays(left, unit, loop) and _stays(right, unit, loop)
        case nodes.Call(func=nodes.Name(name="len"), args=[of]):
            return _stays(of, unit, loop)
    return False


def _picks_steps(facts: Facts, test: Node, wanted: bool) -> bool:
    """``step == 200``, ``self.step in marks``, of a counter that goes on from epoch to epoch."""
    if not isinstance(test, nodes.Compare) or len(test.ops) != 1:
        return False
    op, right = test.ops[0]
    if op not in (("==", "in") if wanted else ("!=", "not in")) or isinstance(right, nodes.Call):
        return False
    sides = [test.left] if op.endswith("in") else [test.left, right]
    return any(_goes_on(facts, _without_shift(side)) for side in sides)


def _without_shift(node: Node) -> Node:
    """``step`` of ``step + 1``."""
    if isinstance(node, nodes.BinOp) and node.op in ("+", "-"):
        return node.left if isinstance(node.right, nodes.Const) else node
    return node


def _goes_on(facts: Facts, node: Node) -> bool:
    if not isinstance(node, nodes.Name | nodes.Attribute):
        return False
    if isinstance(node, nodes.Attribute) and names_a_step(node):
        return True
    found = list(stores(facts, node))
    return any(_counts_for_good(facts, binding, unit) for binding, unit in found) and not any(
        isinstance(binding.value, nodes.Const) and _comes_again(binding, unit)
        for binding, unit in found
    )


def _counts_for_good(facts: Facts, binding: Binding, unit: Unit) -> bool:
    if added(binding) is not None:
        return True
    loop = statement(binding.node)
    return is_counter_of(loop, binding) and not facts.steps.loops_outside(loop, unit)


def _turns_itself_off(facts: Facts, flag: Node, wanted: bool, condition: Condition) -> bool:
    """``if fresh:`` where the branch itself says ``fresh = False``, and nobody takes it back."""
    if not isinstance(flag, nodes.Name | nodes.Attribute):
        return False
    turned_off = False
    for binding, unit in stores(facts, flag):
        value = binding.value if binding.path == () else None
        if (
            isinstance(value, nodes.Const)
            and value.value is not wanted
            and any(
                other.test is condition.test and other.holds is condition.holds
                for other in conditions(binding.node)
            )
        ):
            turned_off = True
        elif _comes_again(binding, unit):
            return False
    return turned_off


def _comes_again(binding: Binding, unit: Unit) -> bool:
    """Whether a value is given anew in a loop, or by a method that may be called again."""
    if isinstance(binding.node, nodes.AssignAttr):
        return unit.name != "__init__"
    return next(loops_around(binding.node), None) is not None
