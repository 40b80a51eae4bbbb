"""Layer 12, picking: whether several samples are picked at random, to be mixed into one.

A mosaic is made of other samples.  The frames of a clip and the pictures of one item are the
sample itself, and the random start of a window of frames picks one window.
"""

from __future__ import annotations

from collections.abc import Iterator

from astroid import nodes

from ddp_lint.model.facts import Facts
from ddp_lint.model.flow import loops_around
from ddp_lint.model.modules import Binding, Unit
from ddp_lint.model.passing import argument_for
from ddp_lint.model.tree import COMPREHENSIONS, Node, ancestors, dotted, is_within, walk

_DEEPEST = 3
_SEVERAL = ("sample", "choices", "shuffle", "perm", "randperm")
_ONE = ("rand", "choice", "integers", "uniform", "normal")
#: Calls that give a row of numbers, whatever it begins with.
_ROWS = frozenset({"range", "arange", "linspace"})
#: How many positional arguments a draw of one number has at most.
_LONE = {"choice": 1, "randint": 2, "randrange": 3, "integers": 2, "uniform": 2, "normal": 2}

#: Calls that lead to a place, outermost first, each with the unit that it stands in.
Chain = tuple[tuple[nodes.Call, Unit], ...]


class Picking:
    """The way to a place: ``ways`` are the calls of ``chain`` and the place itself."""

    def __init__(self, facts: Facts, chain: Chain, node: Node) -> None:
        self.facts = facts
        self.chain = chain
        self.ways = [*(call for call, _ in chain), node]

    @property
    def loop(self) -> Node | None:
        """The loop over samples picked at random in which all this is done, if there is one."""
        for level, way in enumerate(self.ways):
            for loop, target, iterable in _around(way):
                unit = self.facts.values.unit_of(way)
                if not self._picks(iterable, unit, level, 0, False):
                    continue
                turning = {n.name for n in walk(target) if isinstance(n, nodes.AssignName)}
                mentioned = _mentioned(way, unit, loop, turning)
                if mentioned & turning and not (mentioned - turning) & self._told(level):
                    return loop
        return None

    @property
    def is_one_of_several(self) -> bool:
        """Whether it is done again and again for one sample, each time for another thing."""
        for way in self.ways:
            unit = self.facts.values.unit_of(way)
            for loop, target, iterable in _around(way):
                turning = {n.name for n in walk(target) if isinstance(n, nodes.AssignName)}
                few = isinstance(iterable, nodes.Tuple | nodes.List)
                if not few and _mentioned(way, unit, loop, turning) & turning:
                    return True
        return False

    # -- chance -----------------------------------------------------------------------------

    def _picks(self, node: Node, unit: Unit, level: int, depth: int, again: bool) -> bool:
        """Whether a value is several things picked by chance; ``again``: each of several is."""
        match node:
            case nodes.Subscript(value=value, slice=nodes.Const(value=int())) if not again:
                return not _is_draw(value) and self._picks(value, unit, level, depth, again)
            case nodes.BinOp(left=left, right=right) if _is_number(left) or _is_number(right):
                return any(self._picks(one, unit, level, depth, again) for one in (left, right))
            case nodes.Call():
                last = dotted(node.func).rpartition(".")[2]
                if last in _ROWS:
                    return False
                if last.startswith(_SEVERAL):
                    return True
                if last.startswith(_ONE):
                    return again or _has_size(node, last)
            case nodes.Subscript(value=value, slice=index):
                where = [] if isinstance(index, nodes.Slice) else [index]
                return any(self._picks(one, unit, level, depth, again) for one in (value, *where))
            case nodes.Name(name=name):
                return depth < _DEEPEST and any(
                    self._is_bound_to_picks(binding, unit, level, depth + 1, again)
                    for binding in unit.bindings.get(name, ())
                )
        again = again or isinstance(node, (nodes.BinOp, *COMPREHENSIONS))
        if isinstance(node, nodes.List | nodes.Tuple):
            again = again or len(node.elts) > 1
        return any(self._picks(one, unit, level, depth, again) for one in node.get_children())

    def _is_bound_to_picks(
        self, binding: Binding, unit: Unit, level: int, depth: int, again: bool
    ) -> bool:
        if binding.path != ("param",):
            value = binding.value
            return value is not None and self._picks(value, unit, level, depth, again)
        if level == 0:
            return False
        call, caller = self.chain[level - 1]
        given = argument_for(call, unit, binding.name)
        return given is not None and self._picks(given, caller, level - 1, depth, again)

    # -- the sample that was asked for ------------------------------------------------------

    def _told(self, level: int) -> set[str]:
        """Names that tell which sample was asked for, in the unit of this level."""
        unit = self.facts.values.unit_of(self.ways[level])
        given = [name for name in unit.parameters if name != unit.self_name]
        if level:
            call, _ = self.chain[level - 1]
            told = self._told(level - 1)
            given = [
                name
                for name in given
                if (one := argument_for(call, unit, name)) is not None and _names(one) & told
            ]
        return _closed(unit, set(given))


def _around(node: Node) -> Iterator[tuple[Node, Node, Node]]:
    """``for`` loops and comprehensions around ``node``, with their targets and iterables."""
    for loop in loops_around(node):
        if isinstance(loop, nodes.For):
            yield loop, loop.target, loop.iter
    for child, parent in ancestors(node):
        if isinstance(parent, COMPREHENSIONS) and not isinstance(child, nodes.Comprehension):
            for one in parent.generators:
                yield parent, one.target, one.iter


def _is_draw(node: Node) -> bool:
    """Whether something is drawn, one or several."""
    if not isinstance(node, nodes.Call):
        return False
    return dotted(node.func).rpartition(".")[2].startswith((*_SEVERAL, *_ONE))


def _is_number(node: Node) -> bool:
    return isinstance(node, nodes.Const) and isinstance(node.value, int | float)


def _has_size(call: nodes.Call, name: str) -> bool:
    """``choice(paths, 4)``, ``randint(0, n, size=3)``, ``torch.randint(n, (3,))``."""
    if any(k.arg in ("size", "k") and getattr(k.value, "value", 0) != 1 for k in call.keywords):
        return True
    return len(call.args) > _LONE.get(name, 0) or any(
        isinstance(one, nodes.Tuple) for one in call.args
    )


def _mentioned(way: Node, unit: Unit, loop: Node, turning: set[str]) -> set[str]:
    """Names that go into ``way``, also by way of others that the loop binds anew."""
    found: set[str] = set()
    todo = _names(way)
    while todo:
        name = todo.pop()
        if name in found:
            continue
        found.add(name)
        if name in turning:
            continue
        for binding in unit.bindings.get(name, ()):
            if binding.value is not None and is_within(binding.node, loop):
                todo |= _names(binding.value)
    return found


def _closed(unit: Unit, names: set[str]) -> set[str]:
    """The names, and those that are made from them."""
    found = set(names)
    while True:
        more = {
            name
            for name, bindings in unit.bindings.items()
            if name not in found
            and any(b.value is not None and _names(b.value) & found for b in bindings)
        }
        if not more:
            return found
        found |= more


def _names(node: Node) -> set[str]:
    return {part.name for part in walk(node) if isinstance(part, nodes.Name)}
