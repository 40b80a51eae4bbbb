"""Layer 2, origins: where a value comes from, as far as the text of the project tells.

An expression has a set of origins, one for each way its value may have come about.  Nothing
here is executed; what cannot be told is ``Unknown``, which is an answer, not an absence.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias, Union
from zlib import crc32

from astroid import nodes

from ddp_lint.model.modules import Class, Module, Unit
from ddp_lint.model.tree import Node, position

Origin: TypeAlias = Union[
    "Api", "Made", "Instance", "Code", "Type", "File", "Folder", "Param", "Member", "Result",
    "Item", "Expression", "Unknown",
]  # fmt: skip
Origins: TypeAlias = frozenset[Origin]

NOTHING: Origins = frozenset()


_hash_of_text = cache(lambda text: crc32(text.encode("utf-8", "surrogatepass")))


def _steady(value: object) -> int:
    """A hash that is the same in every run, so that sets of origins have the same order.

    The hash of a string and the address of a node differ from run to run, and with them which
    of two reasons a finding would name first.
    """
    if isinstance(value, str):
        return _hash_of_text(value)
    if isinstance(value, Unit | Class):
        value = value.node
    if isinstance(value, nodes.NodeNG):
        end = value.end_lineno or 0, value.end_col_offset or 0
        return hash((*position(value), *end))
    if isinstance(value, Module):
        return _hash_of_text(value.key)
    return 0 if value is None else hash(value)  # the hash of None is an address before 3.12


class _Hashed:
    """Origins are values: nested, keys everywhere, never changed, and so hashed only once.

    Nothing says so by ``frozen=True``, which would treble the time that making one takes.
    """

    __slots__ = ("__dict__", "_hash")
    _hash: int

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            fields = [_steady(value) for value in vars(self).values()]
            self._hash = hash((_hash_of_text(type(self).__name__), *fields))
            return self._hash

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)


@dataclass(eq=False)
class Api(_Hashed):
    """A thing outside the project, by its qualified name: ``torch.save``."""

    name: str


@dataclass(eq=False)
class Made(_Hashed):
    """What a call of something outside the project gives."""

    name: str
    call: nodes.Call


@dataclass(eq=False)
class Instance(_Hashed):
    """An object of a class of the project; ``call`` is None for ``self``."""

    cls: Class
    call: nodes.Call | None


@dataclass(eq=False)
class Code(_Hashed):
    """A function of the project, bound to ``receiver`` where it is a method."""

    unit: Unit
    receiver: Origin | None = None


@dataclass(eq=False)
class Type(_Hashed):
    """A class of the project."""

    cls: Class


@dataclass(eq=False)
class File(_Hashed):
    """A module of the project."""

    module: Module


@dataclass(eq=False)
class Folder(_Hashed):
    """A name that leads into the project or out of it, by what is read from it."""

    name: str
    importer: str


@dataclass(eq=False)
class Param(_Hashed):
    """A parameter; who passes it is the program's business."""

    unit: Unit
    name: str


@dataclass(eq=False)
class Member(_Hashed):
    """An attribute of something whose class is not the project's."""

    of: Origin
    name: str


@dataclass(eq=False)
class Result(_Hashed):
    """What calling such a thing gives."""

    of: Origin
    call: nodes.Call


@dataclass(eq=False)
class Item(_Hashed):
    """A part of something: an index, a key, or "iter" for what iterating gives."""

    of: Origin
    how: int | str


@dataclass(eq=False)
class Expression(_Hashed):
    """A literal or an operation: the text itself is the origin."""

    node: Node


@dataclass(eq=False)
class Unknown(_Hashed):
    """It cannot be told."""

    node: Node


def is_none(origin: Origin) -> bool:
    """Whether it is a ``None`` that stands in the text."""
    return (
        isinstance(origin, Expression)
        and isinstance(origin.node, nodes.Const)
        and origin.node.value is None
    )


def inner(origin: Origin) -> Iterator[Origin]:
    """``origin`` and what it is made from, outermost first."""
    at: Origin | None = origin
    while at is not None:
        yield at
        at = at.of if isinstance(at, Member | Result | Item) else None


def is_deeper(origin: Origin, bound: int) -> bool:
    """Whether ``origin`` is made from so much: with itself, more than ``bound``."""
    at: Origin | None = origin
    while isinstance(at, _MADE_FROM):
        bound -= 1
        if not bound:
            return True
        at = at.of
    return False


_MADE_FROM = (Member, Result, Item)
