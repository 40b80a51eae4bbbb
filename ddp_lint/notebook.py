"""Notebooks: their code cells as one program, and the way back from a line to its cell."""

from __future__ import annotations

import json
from bisect import bisect_right
from dataclasses import dataclass


class NotebookError(ValueError):
    """This is not a notebook that can be linted; the message says why."""


@dataclass(frozen=True)
class Notebook:
    """The code cells as one source.

    ``starts[i]`` is the number of source lines before the first line of the i-th code cell, and
    ``cells[i]`` that cell's number among all cells, from 1.
    """

    source: str
    starts: tuple[int, ...]
    cells: tuple[int, ...]

    def locate(self, line: int) -> tuple[int, int]:
        """The cell that holds ``line`` (from 1), and how many source lines stand before it."""
        at = max(bisect_right(self.starts, line - 1) - 1, 0)
        return self.cells[at], self.starts[at]

    def start_of(self, cell: int) -> int:
        return self.starts[self.cells.index(cell)]


def read_notebook(text: str) -> Notebook:
    """Raises ``NotebookError`` where ``text`` is no notebook of format 3 or 4 in Python."""
    try:
        document = json.loads(text)
        cells = document["cells"]
    except (ValueError, KeyError, TypeError):
        raise NotebookError("is not a notebook: no JSON with a list of cells") from None
    parts: list[str] = []
    starts: list[int] = []
    numbers: list[int] = []
    before = 0
    for number, cell in enumerate(cells, 1):
        if cell.get("cell_type") != "code":
            continue
        source = cell.get("source", "")
        code = source if isinstance(source, str) else "".join(source)
        starts.append(before)
        numbers.append(number)
        parts.append(code)
        before += code.count("\n") + 1
    return Notebook("\n".join(parts), tuple(starts), tuple(numbers))
