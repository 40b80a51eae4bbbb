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
    match value:
        case str():
            return _hash_of_text(value)
        case Module():
            return _hash_of_text(value.key)
        case Unit() | Class():
            return _steady(value.node)
        case nodes.NodeNG():
            end = value.end_lineno or 0, value.end_col_offset or 0
            return hash((*position(value), *end))
        case None:
            return 0  # before Python 3.12 its hash is an address, too
        case _:
            return hash(value)  # a number, or an origin


def _hash_once(self: Origin) -> int:
    """The hash of an origin, computed once: origins are nested, and are keys everywhere."""
    known: int | None = vars(self).get("_hash")
    if known is None:
        known = hash((_hash_of_text(type(self).__name__), *map(_steady, vars(self).values())))
        vars(self)["_hash"] = known
    return known


@dataclass(frozen=True)
class Api:
    """A thing outside the project, by its qualified name: ``torch.save``."""

    name: str

    __hash__ = _hash_once


@dataclass(frozen=True)
class Made:
    """What a call of something outside the project gives."""

    name: str
    call: nodes.Call

    __hash__ = _hash_once


@dataclass(frozen=True)
class Instance:
    """An object of a class of the project; ``call`` is None for ``self``."""

    cls: Class
    call: nodes.Call | None

    __hash__ = _hash_once


@dataclass(frozen=True)
class Code:
    """A function of the project, bound to ``receiver`` where it is a method."""

    unit: Unit
    receiver: Origin | None = None

    __hash__ = _hash_once


@dataclass(frozen=True)
class Type:
    """A class of the project."""

    cls: Class

    __hash__ = _hash_once


@dataclass(frozen=True)
class File:
    """A module of the project."""

    module: Module

    __hash__ = _hash_once


@dataclass(frozen=True)
class Folder:
    """A name that leads into the project or out of it, by what is read from it."""

    name: str
    importer: str

    __hash__ = _hash_once


@dataclass(frozen=True)
class Param:
    """A parameter; who passes it is the program's business."""

    unit: Unit
    name: str

    __hash__ = _hash_once


@dataclass(frozen=True)
class Member:
    """An attribute of something whose class is not the project's."""

    of: Origin
    name: str

    __hash__ = _hash_once


@dataclass(frozen=True)
class Result:
    """What calling such a thing gives."""

    of: Origin
    call: nodes.Call

    __hash__ = _hash_once


@dataclass(frozen=True)
class Item:
    """A part of something: an index, a key, or "iter" for what iterating gives."""

    of: Origin
    how: int | str

    __hash__ = _hash_once


@dataclass(frozen=True)
class Expression:
    """A literal or an operation: the text itself is the origin."""

    node: Node

    __hash__ = _hash_once


@dataclass(frozen=True)
class Unknown:
    """It cannot be told."""

    node: Node

    __hash__ = _hash_once


def inner(origin: Origin) -> Iterator[Origin]:
    """``origin`` and what it is made from, outermost first."""
    at: Origin | None = origin
    while at is not None:
        yield at
        at = at.of if isinstance(at, Member | Result | Item) else None


def depth(origin: Origin) -> int:
    return sum(1 for _ in inner(origin))
