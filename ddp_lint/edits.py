"""Edits on text: which go together, what they make of a file, where an old place ends up.

Nothing here knows findings or rules; a file is its text and its cells.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

from ddp_lint.finding import Edit, Place

_NEWLINE = re.compile(r"\r\n|\r|\n")

#: One stretch of one text: the path, and the cell where the file is a notebook.
Part = tuple[str, int | None]


def part_of(place: Place) -> Part:
    return place.path, place.cell


class Lines:
    """Offsets of the lines of one text, as the parser counts them."""

    def __init__(self, text: str) -> None:
        self.text = text
        ends = list(_NEWLINE.finditer(text))
        self._starts = [0, *(end.end() for end in ends)]
        self._ends = [*(end.start() for end in ends), len(text)]
        self._newlines = [end[0] for end in ends]

    def offset(self, line: int, column: int) -> int:
        """Raises ``ValueError`` where there is no such position."""
        if line == len(self._starts) + 1 and column == 0:
            return len(self.text)  # just past a last line that has no line ending
        if not 0 < line <= len(self._starts):
            raise ValueError(f"there is no line {line}")
        if not 0 <= column <= self._ends[line - 1] - self._starts[line - 1]:
            raise ValueError(f"line {line} has no column {column}")
        return self._starts[line - 1] + column

    def span(self, place: Place) -> tuple[int, int]:
        """Start and end offset.  Raises ``ValueError`` where the place is not in this text."""
        start = self.offset(place.line, place.column)
        end = self.offset(place.end_line, place.end_column)
        if end < start:
            raise ValueError(f"line {place.line}: the end lies before the start")
        return start, end

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1]

    @property
    def newline(self) -> str:
        """The line ending that this text uses most."""
        return max(("\n", "\r\n", "\r"), key=self._newlines.count)


@dataclass(frozen=True, order=True)
class Change:
    """Replace ``text[start:end]`` by ``new``."""

    start: int
    end: int
    new: str

    def collides_with(self, other: Change) -> bool:
        """Whether the order of the two, or the text between them, would matter.

        Two insertions at one point collide unless they are the same one, for which see ``Plan``.
        """
        if self.start == self.end and other.start == other.end:
            return self.start == other.start
        return self.start < other.end and other.start < self.end


@dataclass
class Plan:
    """Changes to one text that do not collide; a change that two edits ask for is made once."""

    lines: Lines
    changes: set[Change] = field(default_factory=set)

    def change(self, edit: Edit) -> Change:
        """The edit in this text, its line endings the text's own.  Raises ``ValueError``."""
        new = _NEWLINE.sub("\n", edit.text)
        if self.lines.newline != "\n":
            new = new.replace("\n", self.lines.newline)
        return Change(*self.lines.span(edit.place), new)

    def takes(self, change: Change) -> bool:
        return change in self.changes or not any(map(change.collides_with, self.changes))

    def result(self) -> str:
        text = self.lines.text
        parts: list[str] = []
        at = 0
        for change in sorted(self.changes):
            parts += text[at : change.start], change.new
            at = change.end
        return "".join((*parts, text[at:]))

    def moved(self, offset: int) -> tuple[int, int]:
        """Where the old ``offset`` is in the result: the first and the last place it can be.

        They differ where a change touches it: it may be anywhere in the new text then.
        """
        grown = 0
        touched: list[int] = []
        for change in sorted(self.changes):
            if change.start > offset:
                break
            if change.end >= offset:
                touched += change.start + grown, change.start + grown + len(change.new)
            grown += len(change.new) - (change.end - change.start)
        return (min(touched), max(touched)) if touched else (offset + grown,) * 2


def collide(edits: Iterable[Edit]) -> bool:
    """Whether the edits of one fix contradict one another."""
    by_part: dict[Part, list[Place]] = {}
    for edit in set(edits):
        by_part.setdefault(part_of(edit.place), []).append(edit.place)
    for places in by_part.values():
        ordered = sorted(places)
        for one, other in pairwise(ordered):
            end = one.end_line, one.end_column
            if end > (other.line, other.column) or one == other:
                return True
    return False
