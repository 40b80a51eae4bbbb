"""What the linter says: a place, a message, the places that make it true, and perhaps a mend.

This is the lowest layer: it knows neither rules nor programs nor output formats.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Level = Literal["error", "warning", "note"]

#: From harmless to harmful; ``LEVELS.index`` orders them.
LEVELS: tuple[Level, ...] = ("note", "warning", "error")


@dataclass(frozen=True, order=True)
class Place:
    """A stretch of source text.

    Lines count from 1 and columns from 0, in characters (not in UTF-8 bytes, as ``ast`` has
    them).  ``end_column`` is exclusive.  ``path`` is relative to the folder the linter was
    started in where it lies below it, with ``/``.  In a notebook ``cell`` is the number of the
    cell, from 1 over all cells, and lines count within that cell.
    """

    path: str
    line: int
    column: int
    end_line: int
    end_column: int
    cell: int | None = None


@dataclass(frozen=True)
class Related:
    """A place that makes a finding true: a call on the way, the loop, the other branch."""

    place: Place
    message: str


@dataclass(frozen=True, order=True)
class Edit:
    """Replace the text of ``place`` by ``text``.  An empty place inserts."""

    place: Place
    text: str


@dataclass(frozen=True)
class Fix:
    """Edits that belong together.  ``safe``: the program computes the same, or what was meant."""

    title: str
    edits: tuple[Edit, ...]
    safe: bool


@dataclass(frozen=True)
class Draft:
    """A finding as a rule yields it: the engine adds the rule's code and level.

    ``level`` is given only where one rule speaks at two levels.
    """

    place: Place
    message: str
    related: tuple[Related, ...] = ()
    fix: Fix | None = None
    level: Level | None = None


@dataclass(frozen=True)
class Finding:
    """One thing to act on, as every format and the Python API give it."""

    code: str
    level: Level
    place: Place
    message: str
    related: tuple[Related, ...] = ()
    fix: Fix | None = field(default=None, compare=False)

    @property
    def sort_key(self) -> tuple[Place, str, str]:
        return self.place, self.code, self.message


@dataclass(frozen=True, order=True)
class Problem:
    """A file that could not be linted, or only in part, and why: one line for a person."""

    path: str
    line: int
    message: str
