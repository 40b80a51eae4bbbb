"""Layer 9, uses: what becomes of a number once the host has it."""

from __future__ import annotations

from collections.abc import Iterator

from astroid import nodes

from ddp_lint.model.facts import Facts
from ddp_lint.model.flow import reaching
from ddp_lint.model.modules import Unit
from ddp_lint.model.steps import Happening
from ddp_lint.model.torch_api import FACTORIES
from ddp_lint.model.tree import Node, ancestors, dotted, source, statement, walk, walk_scope

_DEEPEST = 3
#: Functions and methods that are told a size, or lengths that must be on the host.
_SIZED = frozenset(
    {"view", "reshape", "expand", "repeat", "split", "split_with_sizes", "narrow", "unflatten",
     "new_zeros", "new_ones", "new_empty", "new_full", "pack_padded_sequence", "range"}
)  # fmt: skip
#: Functions of the host that are told where to stop.
_BOUNDED = frozenset(
    {"numpy.random.randint", "numpy.random.random_integers", "random.randint", "random.randrange",
     "numpy.arange", "numpy.zeros", "numpy.ones", "numpy.empty"}
)  # fmt: skip
#: What a number goes through and still is that number, or is made of nothing else.
_CONVERTING = frozenset({"int", "float", "list", "tuple", "numpy", "tolist", "item", "astype",
                         "max", "min", "array", "asarray"})  # fmt: skip


def sized_by(facts: Facts, happening: Happening, known: bool = False) -> str:
    """The function that needs the number on the host as a size, as it is written; "" without.

    ``known`` says that the host has the number: then also one that is told where to stop."""
    for use in _uses(facts, happening.node, happening, 0):
        taker = _taker(use)
        if isinstance(taker, nodes.Subscript):
            return source(taker)
        if isinstance(taker, nodes.Call) and (
            facts.names(taker) & (FACTORIES | _BOUNDED if known else FACTORIES)
            or _last_name(taker) in _SIZED
        ):
            return dotted(taker.func) or _last_name(taker)
    return ""


def is_received(facts: Facts, value: Node) -> bool:
    """Whether another rank sent it: ``irecv(shape, ...)``, ``broadcast(length, 0)``."""
    unit = facts.values.unit_of(value)
    return isinstance(value, nodes.Name) and any(
        isinstance(part, nodes.Name) and part.name == value.name
        for call in unit.calls
        if any(name.startswith("torch.distributed.") for name in facts.names(call))
        for part in walk(call)
    )


def acts(facts: Facts, happening: Happening) -> bool:
    """Whether the number goes out into the world, which answers: ``seen = env.step(action)``."""
    return any(
        isinstance(taker, nodes.Call)
        and _last_name(taker) == "step"
        and isinstance(statement(taker), nodes.Assign)
        for taker in map(_taker, _uses(facts, happening.node, happening, 0))
    )


def _last_name(call: nodes.Call) -> str:
    return str(getattr(call.func, "attrname", getattr(call.func, "name", "")))


def _taker(node: Node) -> Node | None:
    """The call or the slice that gets the number, through what only converts it."""
    at = node
    while at.parent is not None and not at.is_statement:
        parent = at.parent
        if isinstance(parent, nodes.Call):
            if parent.func is not at and _last_name(parent) not in _CONVERTING:
                return parent
        elif isinstance(parent, nodes.Slice):
            return next((outer for _, outer in ancestors(parent)
                         if isinstance(outer, nodes.Subscript)), None)  # fmt: skip
        elif not isinstance(
            parent,
            nodes.Attribute | nodes.Keyword | nodes.Tuple | nodes.List | nodes.Starred
            | nodes.BinOp | nodes.Subscript,
        ):  # fmt: skip
            return None
        at = parent
    return None


def _uses(facts: Facts, node: Node, happening: Happening, depth: int) -> Iterator[Node]:
    """The places at which the number is used: where it is read, under the name that it gets,
    and in the caller that it is returned to."""
    yield node
    unit = facts.values.unit_of(node)
    at = statement(node)
    if isinstance(at, nodes.Assign):
        for target in at.targets:
            if isinstance(target, nodes.AssignName):
                yield from _named(target, unit)
    elif isinstance(at, nodes.Return) and depth < len(happening.chain) and depth < _DEEPEST:
        call, _ = happening.chain[-1 - depth]
        yield from _uses(facts, call, happening, depth + 1)


def _named(target: nodes.AssignName, unit: Unit) -> Iterator[Node]:
    for node in walk_scope(unit.node):
        if not isinstance(node, nodes.Name) or node.name != target.name:
            continue
        if any(binding.node is target for binding in reaching(unit, node.name, node)):
            yield node
