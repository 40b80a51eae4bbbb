"""Layer 2, origins: where a value comes from, as far as the text of the project tells.

An expression has a set of origins, one for each way its value may have come about.  Nothing
here is executed; what cannot be told is ``Unknown``, which is an answer, not an absence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias, Union

from astroid import nodes

from ddp_lint.model.modules import Class, Module, Unit
from ddp_lint.model.tree import Node

Origin: TypeAlias = Union[
    "Api", "Made", "Instance", "Code", "Type", "File", "Folder", "Param", "Member", "Result",
    "Item", "Expression", "Unknown",
]  # fmt: skip
Origins: TypeAlias = frozenset[Origin]

NOTHING: Origins = frozenset()


def _hash_once(*fields: str) -> Callable[[object], int]:
    """A hash that is computed once: origins are nested, and are keys everywhere."""

    def hash_(self: object) -> int:
        known: int | None = self.__dict__.get("_hash")
        if known is None:
            known = hash((type(self), *(getattr(self, name) for name in fields)))
            self.__dict__["_hash"] = known
        return known

    return hash_


@dataclass(frozen=True)
class Api:
    """A thing outside the project, by its qualified name: ``torch.save``."""

    name: str


@dataclass(frozen=True)
class Made:
    """What a call of something outside the project gives."""

    name: str
    call: nodes.Call


@dataclass(frozen=True)
class Instance:
    """An object of a class of the project; ``call`` is None for ``self``."""

    cls: Class
    call: nodes.Call | None


@dataclass(frozen=True)
class Code:
    """A function of the project, bound to ``receiver`` where it is a method."""

    unit: Unit
    receiver: Origin | None = None

    __hash__ = _hash_once("unit", "receiver")


@dataclass(frozen=True)
class Type:
    """A class of the project."""

    cls: Class


@dataclass(frozen=True)
class File:
    """A module of the project."""

    module: Module


@dataclass(frozen=True)
class Folder:
    """A name that leads into the project or out of it, by what is read from it."""

    name: str
    importer: str


@dataclass(frozen=True)
class Param:
    """A parameter; who passes it is the program's business."""

    unit: Unit
    name: str


@dataclass(frozen=True)
class Member:
    """An attribute of something whose class is not the project's."""

    of: Origin
    name: str

    __hash__ = _hash_once("of", "name")


@dataclass(frozen=True)
class Result:
    """What calling such a thing gives."""

    of: Origin
    call: nodes.Call

    __hash__ = _hash_once("of", "call")


@dataclass(frozen=True)
class Item:
    """A part of something: an index, a key, or "iter" for what iterating gives."""

    of: Origin
    how: int | str

    __hash__ = _hash_once("of", "how")


@dataclass(frozen=True)
class Expression:
    """A literal or an operation: the text itself is the origin."""

    node: Node


@dataclass(frozen=True)
class Unknown:
    """It cannot be told."""

    node: Node


def inner(origin: Origin) -> Iterator[Origin]:
    """``origin`` and what it is made from, outermost first."""
    at: Origin | None = origin
    while at is not None:
        yield at
        at = at.of if isinstance(at, Member | Result | Item) else None


def depth(origin: Origin) -> int:
    return sum(1 for _ in inner(origin))
