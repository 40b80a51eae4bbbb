"""Notebooks: their code cells as one program, and the way back from a line to its cell.

IPython's own syntax (see ``ipython``) is masked in the program; a cell that is no Python all the
same is left out of it and named, so that the other cells can still be linted.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ddp_lint.ipython import mask

_SPACE = re.compile(r"[ \t\r\n]*")
_NEWLINE = re.compile(r"\r\n|\r|\n")
_DECODER = json.JSONDecoder()


class NotebookError(ValueError):
    """This is not a notebook that can be linted; the message says why."""


@dataclass(frozen=True)
class BrokenCell:
    """A code cell that is not Python and was left out: its number, the line in it, and why."""

    cell: int
    line: int
    message: str


@dataclass(frozen=True)
class Notebook:
    """The code cells as one source.

    ``starts[i]`` is the number of source lines before the first line of the i-th code cell,
    ``cells[i]`` that cell's number among all cells, from 1, and ``written[i]`` its text as it was
    typed, before IPython's syntax was masked (same lines, same columns).
    """

    source: str
    starts: tuple[int, ...]
    cells: tuple[int, ...]
    written: tuple[str, ...] = ()
    broken: tuple[BrokenCell, ...] = ()

    def locate(self, line: int) -> tuple[int, int]:
        """The cell that holds ``line`` (from 1), and how many source lines stand before it."""
        at = max(bisect_right(self.starts, line - 1) - 1, 0)
        return self.cells[at], self.starts[at]

    def start_of(self, cell: int) -> int:
        return self.starts[self.cells.index(cell)]

    def written_cell(self, cell: int) -> str:
        """The text of a code cell as it was typed."""
        return self.written[self.cells.index(cell)]

    def written_lines(self, cell: int) -> list[str]:
        return _NEWLINE.split(self.written_cell(cell))

    def written_line(self, cell: int, line: int) -> str:
        """One line (from 1) of a code cell as it was typed; empty past its end."""
        lines = self.written_lines(cell)
        return lines[line - 1] if 0 < line <= len(lines) else ""


def read_notebook(text: str) -> Notebook:
    """Raises ``NotebookError`` where ``text`` is no notebook of format 3 or 4 in Python."""
    starts: list[int] = []
    numbers: list[int] = []
    written: list[str] = []
    masked: list[str] = []
    broken: list[BrokenCell] = []
    before = 0
    for number, code in _code_cells(_load(text)):
        python = mask(code)
        fault = _fault(python)
        if fault is not None:
            broken.append(BrokenCell(number, *fault))
            python = "".join(_NEWLINE.findall(code))
        starts.append(before)
        numbers.append(number)
        written.append(code)
        masked.append(python)
        before += len(_NEWLINE.findall(code)) + 1
    if not numbers:  # a notebook of prose alone is an empty program
        starts, numbers, written = [0], [1], [""]
    return Notebook(
        "\n".join(masked), tuple(starts), tuple(numbers), tuple(written), tuple(broken)
    )


def _load(text: str) -> dict[str, object]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise NotebookError("is not a notebook: its JSON cannot be read") from None
    if not isinstance(document, dict) or not ("cells" in document or "worksheets" in document):
        raise NotebookError("is not a notebook: no JSON with a list of cells")
    language = _language(document)
    if language and "python" not in language.lower():
        raise NotebookError(f"is a notebook in {language}, not in Python")
    return document


def _language(document: dict[str, object]) -> str:
    """What the notebook says it is written in; empty where it does not say."""
    metadata = document.get("metadata")
    if not isinstance(metadata, dict):
        return ""
    for section, key in (("language_info", "name"), ("kernelspec", "language")):
        part = metadata.get(section)
        if isinstance(part, dict) and isinstance(part.get(key), str):
            return str(part[key])
    return ""


def _code_cells(document: dict[str, object]) -> Iterator[tuple[int, str]]:
    """The number, among all cells, and the text of each code cell."""
    for number, cell in enumerate(_cells(document), 1):
        if not isinstance(cell, dict) or cell.get("cell_type") != "code":
            continue
        source = cell.get("source", cell.get("input", ""))
        if isinstance(source, list):
            source = "".join(part for part in source if isinstance(part, str))
        yield number, source if isinstance(source, str) else ""


def _cells(document: dict[str, object]) -> Iterator[object]:
    sheets: list[object] = [document]
    if "cells" not in document:  # format 3
        worksheets = document.get("worksheets")
        sheets = worksheets if isinstance(worksheets, list) else []
    for sheet in sheets:
        cells = sheet.get("cells") if isinstance(sheet, dict) else None
        if not isinstance(cells, list):
            raise NotebookError("is not a notebook: its cells are no list")
        yield from cells


def _fault(code: str) -> tuple[int, str] | None:
    """Line and reason where this cell alone is no Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(code)
    except SyntaxError as error:
        return error.lineno or 1, error.msg
    except (ValueError, RecursionError, MemoryError) as error:
        return 1, str(error) or "too deeply nested"
    return None


def rewrite(text: str, changed: Mapping[int, str]) -> str:
    """The notebook ``text`` with new code in some cells, and every other character as it was.

    ``changed`` is by cell number, from 1 over all cells.  Lines of a cell that stay the same keep
    their very characters too.
    """
    spans = list(_source_spans(text))
    ascii_only = text.isascii() and "\\u" in text
    for number in sorted(changed, reverse=True):
        start, end = spans[number - 1]
        value = _encoded(text[start:end], changed[number], ascii_only)
        text = text[:start] + value + text[end:]
    return text


def _source_spans(text: str) -> Iterator[tuple[int, int]]:
    """Where the value of each cell's ``source`` stands; an empty span where there is none."""
    for key, start, _ in _members(text, _skip(text, 0)):
        if key == "cells":
            sheets = [start]
        elif key == "worksheets":
            sheets = [
                cells
                for sheet, _ in _elements(text, start)
                for name, cells, _ in _members(text, sheet)
                if name == "cells"
            ]
        else:
            continue
        for cells in sheets:
            for cell, _ in _elements(text, cells):
                yield next(
                    ((at, end) for name, at, end in _members(text, cell) if name in _SOURCE),
                    (cell, cell),
                )


_SOURCE = ("source", "input")


def _members(text: str, at: int) -> Iterator[tuple[str, int, int]]:
    """Key, start and end of value of each member of the JSON object at ``at``."""
    at = _skip(text, at + 1)
    while text[at] != "}":
        key, at = _DECODER.raw_decode(text, at)
        start = _skip(text, _skip(text, at) + 1)
        _, end = _DECODER.raw_decode(text, start)
        yield key, start, end
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)


def _elements(text: str, at: int) -> Iterator[tuple[int, int]]:
    """Start and end of each element of the JSON array at ``at``."""
    at = _skip(text, at + 1)
    while text[at] != "]":
        _, end = _DECODER.raw_decode(text, at)
        yield at, end
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _encoded(old: str, code: str, ascii_only: bool) -> str:
    """``code`` as JSON in the way ``old`` was written: one string, or a list of lines."""
    if not old.startswith("["):
        return json.dumps(code, ensure_ascii=ascii_only)
    spans = list(_elements(old, 0))
    kept = {json.loads(old[start:end]): old[start:end] for start, end in spans}
    lines = re.split(r"(?<=\n)", code)
    items = [kept.get(line) or json.dumps(line, ensure_ascii=ascii_only) for line in lines if line]
    if not items:
        return "[]"
    opening = old[1 : spans[0][0]] if spans else ""
    between = old[spans[0][1] : spans[1][0]] if len(spans) > 1 else f",{opening or ' '}"
    closing = old[spans[-1][1] : -1] if spans else ""
    return f"[{opening}{between.join(items)}{closing}]"


def line_in_file(text: str, cell: int, line: int) -> int:
    """The line (from 1) of the notebook's JSON ``text`` that holds a line of a cell.

    Where the cell is written as one string, all of its lines are on that string's line.
    """
    spans = list(_source_spans(text))
    if not 0 < cell <= len(spans):
        return 1
    at, end = spans[cell - 1]
    if text.startswith("[", at, end):
        before = 0
        for start, stop in _elements(text, at):
            at = start
            before += len(_NEWLINE.findall(str(json.loads(text[start:stop]))))
            if before >= line:
                break
    return text.count("\n", 0, at) + 1
