"""Layer 11, endings: how the names of files end that a program reads, as far as it says so."""

from __future__ import annotations

import re
from collections.abc import Iterator

from astroid import nodes

from ddp_lint.model.facts import Facts
from ddp_lint.model.flow import conditions, parts_of
from ddp_lint.model.loading import Loading
from ddp_lint.model.origins import Expression, Item, Made, Member, Origin, Result
from ddp_lint.model.tree import Node

_DEEPEST = 8
_ENDING = re.compile(r"\.[A-Za-z0-9]{2,5}$")
#: Calls that give the file or the names of their first argument.
_SAME = frozenset(
    ["builtins.str", "builtins.sorted", "builtins.list", "builtins.open", "builtins.set",
     "io.BytesIO", "glob.glob", "glob.iglob", "os.fspath", "os.path.abspath", "natsort.natsorted"]
)  # fmt: skip
_ROWS = frozenset({"builtins.sorted", "builtins.list", "glob.glob", "natsort.natsorted"})
#: Calls that join their arguments to a name.
_JOINED = frozenset({"os.path.join", "pathlib.Path", "pathlib.PurePath"})
#: Methods whose first argument is a pattern, and those that give what they are called on.
_PATTERNS = frozenset({"glob", "rglob", "joinpath"})
_SAME_METHODS = frozenset({"open", "read", "read_bytes", "as_posix", "resolve", "format", "strip"})


def endings(loading: Loading, node: Node) -> frozenset[str]:
    """How the names end of the files that ``node`` stands for: ``.wav``; "" is one unknown."""
    return frozenset(_Endings(loading).of(node, 0)) or frozenset({""})


class _Endings:
    def __init__(self, loading: Loading) -> None:
        self.loading = loading
        self.facts: Facts = loading.facts

    def of(self, node: Node | None, depth: int) -> Iterator[str]:
        if node is None or depth > _DEEPEST:
            yield ""
            return
        for origin in self.facts.origins(node):
            yield from self._of(origin, depth)

    def _of(self, origin: Origin, depth: int) -> Iterator[str]:
        match origin:
            case Expression(node=node):
                yield from self._written(origin, node, depth)
            case Item(of=base):
                yield from self._of(base, depth + 1) if depth < _DEEPEST else [""]
            case Made(name=name, call=call) if name in _SAME and call.args:
                yield from self.of(call.args[0], depth + 1)
            case Made(name=name, call=call) if name in _JOINED and call.args:
                yield from self.of(call.args[-1], depth + 1)
            case Result(of=Member(of=base, name=name), call=call):
                yield from self._method(base, name, call, depth)
            case _:
                yield ""

    def _written(self, origin: Origin, node: Node, depth: int) -> Iterator[str]:
        match node:
            case nodes.Const(value=str(text)):
                yield _ending(text)
            case nodes.JoinedStr(values=[*_, last]):
                yield from self.of(last, depth + 1)
            case nodes.FormattedValue(value=value):
                yield from self.of(value, depth + 1)
            case nodes.BinOp(op="%", left=left):
                yield from self.of(left, depth + 1)
            case nodes.BinOp(op="+", left=left, right=right) if self._is_row(right):
                yield from self.of(left, depth + 1)
                yield from self.of(right, depth + 1)
            case nodes.BinOp(op="+" | "/", right=right) | nodes.AugAssign(op="+=", value=right):
                yield from self.of(right, depth + 1)
            case nodes.List() | nodes.Tuple() | nodes.ListComp() | nodes.GeneratorExp():
                for one in self.loading.calls.elements(origin):
                    asked = _asked_for(one)
                    yield from [asked] if asked else self.of(one, depth + 1)
            case _:
                yield ""

    def _is_row(self, node: Node) -> bool:
        """Whether it is several names, so that ``+`` makes a longer row and no longer name."""
        return any(
            (isinstance(o, Expression) and isinstance(o.node, nodes.List | nodes.ListComp))
            or (isinstance(o, Made) and o.name in _ROWS)
            for o in self.facts.origins(node)
        )

    def _method(self, base: Origin, name: str, call: nodes.Call, depth: int) -> Iterator[str]:
        if name in _PATTERNS and call.args:
            yield from self.of(call.args[-1], depth + 1)
        elif name == "with_suffix" and call.args:
            yield from self.of(call.args[0], depth + 1)
        elif name == "replace" and len(call.args) == 2:
            yield from self.of(call.args[1], depth + 1)
        elif name in _SAME_METHODS and depth < _DEEPEST:
            yield from self._of(base, depth + 1)
        else:
            yield ""


def _ending(text: str) -> str:
    found = _ENDING.search(text)
    return found[0].lower() if found else ""


def _asked_for(node: Node) -> str:
    """``.wav`` of ``[name for name in names if name.endswith(".wav")]``, also in a loop."""
    tests = [condition.test for condition in conditions(node) if condition.holds]
    around = node.parent
    if isinstance(around, nodes.ListComp | nodes.GeneratorExp):
        tests += [test for part in around.generators for test in part.ifs]
    for test in tests:
        for part, holds in parts_of(test, True):
            match part:
                case nodes.Call(
                    func=nodes.Attribute(attrname="endswith"), args=[nodes.Const(value=str(text))]
                ) if holds:
                    return _ending(text)
    return ""
