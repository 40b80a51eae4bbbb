"""Layer 10, checking: code that finds out whether two values are what they should be."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from astroid import nodes

from ddp_lint.model.modules import Unit
from ddp_lint.model.tree import Node, ancestors, dotted, is_within, walk, walk_scope

_CLOSE = frozenset({"allclose", "isclose", "equal", "array_equal", "array_equiv"})
_ASSERTS = frozenset({"assert_close", "assert_allclose", "assert_equal", "assert_array_equal",
                      "assert_almost_equal", "assertEqual", "assertAlmostEqual"})  # fmt: skip


def shows_a_check(call: nodes.Call, shown: Iterable[Node], unit: Unit, around: Node) -> bool:
    """Whether ``shown``, what a call says, has both sides of a comparison within ``around`` that
    is asserted, given back or kept, or that the call itself hangs on."""
    said = {part.as_string() for one in shown for part in walk(one) if _is_value(part)}
    for node in walk_scope(around):
        sides = list(_sides(node))
        if not sides or any(_counts(side, unit) for side in sides):
            continue
        hidden = [side for side in sides if side.as_string() not in said]
        if not hidden and (_is_kept(node) or _hangs_on(call, node)):
            return True
        if len(hidden) < len(sides) and all(map(_is_number, hidden)) and _is_asserted(node):
            return True
    return False


def _is_value(node: Node) -> bool:
    return isinstance(node, nodes.Name | nodes.Attribute | nodes.Call | nodes.Subscript)


def _sides(node: Node) -> Iterator[Node]:
    """What is compared for being the same."""
    if isinstance(node, nodes.Compare) and len(node.ops) == 1 and node.ops[0][0] in ("==", "!="):
        yield from (node.left, node.ops[0][1])
    elif isinstance(node, nodes.Call):
        func = node.func
        if dotted(func).rpartition(".")[2] in _CLOSE | _ASSERTS:
            of = [func.expr] if isinstance(func, nodes.Attribute) and len(node.args) == 1 else []
            yield from (*of, *node.args[:2])


def _counts(side: Node, unit: Unit) -> bool:
    """``step`` of ``step == last``: where the loop is, not what it computes."""
    return isinstance(side, nodes.Name) and any(
        binding.path[:1] in (("iter",), ("aug",)) for binding in unit.bindings.get(side.name, ())
    )


def _is_number(side: Node) -> bool:
    return isinstance(side, nodes.Const) and isinstance(side.value, int | float)


def _is_asserted(node: Node) -> bool:
    if isinstance(node, nodes.Call) and dotted(node.func).rpartition(".")[2] in _ASSERTS:
        return True
    return isinstance(_taker(node), nodes.Assert)


def _is_kept(node: Node) -> bool:
    """Whether the answer is asserted, returned or put away."""
    return _is_asserted(node) or isinstance(
        _taker(node), nodes.Return | nodes.Assign | nodes.AugAssign
    )


def _taker(node: Node) -> Node | None:
    """What takes an answer, or a combination of it with others."""
    return next(
        (up for _, up in ancestors(node) if not isinstance(up, nodes.BoolOp | nodes.UnaryOp)), None
    )


def _hangs_on(call: Node, comparison: Node) -> bool:
    return any(
        isinstance(parent, nodes.If)
        and child is not parent.test
        and is_within(comparison, parent.test)
        for child, parent in ancestors(call)
    )
