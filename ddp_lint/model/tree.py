"""Layer 0, trees: one file parsed, without ever looking beyond it.

astroid's builder follows imports and runs its plugins; only its tree is wanted here, so the
tree is rebuilt from Python's own without the builder.  The result is the same whatever is
installed, and nothing of the linted project is imported.
"""

from __future__ import annotations

import ast
import gc
import warnings
from collections.abc import Iterator
from itertools import pairwise
from typing import TypeAlias, cast

from astroid import nodes
from astroid.manager import AstroidManager
from astroid.rebuilder import TreeRebuilder

Node = nodes.NodeNG
Loop: TypeAlias = nodes.For | nodes.While

_MANAGER = AstroidManager()

SCOPES = (nodes.FunctionDef, nodes.Lambda, nodes.ClassDef, nodes.Module)
LOOPS = (nodes.For, nodes.While)
COMPREHENSIONS = (nodes.ListComp, nodes.SetComp, nodes.DictComp, nodes.GeneratorExp)


class Unparsable(Exception):
    """The parser refused this text; ``line`` says where (0: nowhere in particular)."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.line = line


def parse(text: str, name: str) -> nodes.Module:
    """The tree of ``text``.  Raises ``Unparsable`` with a sentence for a person."""
    collecting = gc.isenabled()
    gc.disable()  # a tree is all cycles and all alive: collecting while it grows only costs
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in the linted file are not ours
            tree = ast.parse(text)
        rebuilder = TreeRebuilder(_MANAGER, data=None)
        return rebuilder.visit_module(tree, name, name, package=False)
    except SyntaxError as error:
        raise Unparsable(_explain(error, text), error.lineno or 0) from None
    except (RecursionError, MemoryError):
        raise Unparsable("is nested too deeply to be parsed") from None
    except ValueError as error:
        raise Unparsable(f"cannot be parsed: {error}") from None
    finally:
        if collecting:
            gc.enable()


def _explain(error: SyntaxError, text: str) -> str:
    line = (error.text or "").strip()
    if line.startswith(("print ", "exec ")) or "Missing parentheses in call to" in str(error.msg):
        return "is Python 2, which cannot be linted"
    return f"has a syntax error: {error.msg}"


def walk(node: Node) -> Iterator[Node]:
    """``node`` and everything below it, in the order of the source."""
    stack = [node]
    while stack:
        at = stack.pop()
        yield at
        stack.extend(reversed(list(at.get_children())))


def walk_scope(node: Node) -> Iterator[Node]:
    """As ``walk``, without the bodies of functions, lambdas and classes defined below."""
    stack = [node]
    while stack:
        at = stack.pop()
        yield at
        if at is not node and isinstance(at, SCOPES):
            continue
        stack.extend(reversed(list(at.get_children())))


def ancestors(node: Node) -> Iterator[tuple[Node, Node]]:
    """Pairs (child, parent) from ``node`` upwards within its function, class or module body."""
    child, parent = node, node.parent
    while parent is not None:
        yield child, parent
        if isinstance(parent, SCOPES):
            return
        child, parent = parent, parent.parent


def statement(node: Node) -> Node:
    """The statement that ``node`` is part of."""
    at = node
    while not at.is_statement and at.parent is not None:
        at = at.parent
    return at


def block_of(at: Node) -> list[Node]:
    """The statements among which one stands."""
    for part in ("body", "orelse", "finalbody"):
        block: list[Node] | None = getattr(at.parent, part, None)
        if isinstance(block, list) and any(one is at for one in block):
            return block
    return []


def position(node: Node) -> tuple[int, int]:
    return node.lineno or 0, node.col_offset or 0


def precedes(first: Node, second: Node) -> bool:
    """Whether ``first`` begins earlier in the source text."""
    return position(first) < position(second)


def follows(second: Node, first: Node) -> bool:
    """Whether ``second`` is the next statement of the block of ``first``."""
    for part in ("body", "orelse", "finalbody"):
        block = getattr(first.parent, part, None)
        if isinstance(block, list) and any(one is first for one in block):
            return any(a is first and b is second for a, b in pairwise(block))
    return False


def is_within(node: Node, outer: Node) -> bool:
    at: Node | None = node
    while at is not None:
        if at is outer:
            return True
        at = at.parent
    return False


def source(node: Node) -> str:
    """The expression as text for a message: on one line, and not longer than a person reads."""
    text = " ".join(str(node.as_string()).split())
    return text if len(text) <= 60 else f"{text[:57]}..."


def dotted(node: Node) -> str:
    """``a.b.c`` as written, "" for anything that is no chain of names."""
    parts: list[str] = []
    at = node
    while isinstance(at, nodes.Attribute | nodes.AssignAttr):
        parts.append(at.attrname)
        at = at.expr
    if not isinstance(at, nodes.Name | nodes.AssignName):
        return ""
    parts.append(at.name)
    return ".".join(reversed(parts))


def elements(display: nodes.BaseContainer) -> list[Node]:
    """The elements of a list, tuple or set display."""
    # As astroid declares them they may be proxies; the tree of a parsed file has none.
    return cast(list[Node], display.elts)


def entries(display: nodes.Dict) -> list[tuple[Node, Node]]:
    """Keys and values of a dictionary display; ``**more`` has a ``DictUnpack`` for its key."""
    return cast(list[tuple[Node, Node]], display.items)


def compared(node: nodes.Compare) -> list[Node]:
    """What a comparison compares, from left to right."""
    return cast(list[Node], [node.left, *(right for _, right in node.ops)])
