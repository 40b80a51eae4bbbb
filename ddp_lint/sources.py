"""The files of a project: read once, decoded as Python would, their places as people count.

Nothing here parses or runs anything.  A file that cannot be read or decoded raises
``Unreadable`` with a sentence for a person.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from ddp_lint.finding import Place
from ddp_lint.notebook import Notebook, NotebookError, read_notebook


class Unreadable(Exception):
    """This file cannot be linted; the message says why, ``line`` where (0: the whole file)."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.line = line


@dataclass(eq=False)
class SourceFile:
    """One Python file or notebook.

    ``path`` is where it lies, ``name`` how findings call it.  ``given`` is text that stands for
    what is on the disk: an editor's unsaved buffer, a string handed to the Python API.
    """

    path: Path
    name: str
    given: str | None = None

    @cached_property
    def raw(self) -> bytes:
        """The bytes of the file, for the gate.  Raises ``Unreadable``."""
        if self.given is not None:
            return self.given.encode("utf-8", "surrogatepass")
        try:
            return self.path.read_bytes()
        except OSError as error:
            raise Unreadable(f"cannot be read: {error.strerror or error}") from None

    @cached_property
    def whole_text(self) -> str:
        """The decoded file as it is on the disk, line endings kept.  Raises ``Unreadable``."""
        if self.given is not None:
            return self.given.removeprefix("\ufeff")
        if b"\0" in self.raw:
            raise Unreadable("contains NUL bytes: is it a binary file, or saved as UTF-16?")
        encoding = "utf-8-sig"
        try:
            if not self.is_notebook:
                encoding, _ = tokenize.detect_encoding(io.BytesIO(self.raw).readline)
            return self.raw.decode(encoding)
        except (SyntaxError, LookupError) as error:
            raise Unreadable(f"its encoding line cannot be used: {error}", 1) from None
        except UnicodeDecodeError as error:
            line = self.raw[: error.start].count(b"\n") + 1
            wanted = "UTF-8" if encoding.startswith("utf-8") else encoding
            raise Unreadable(
                f"is not {wanted}: save it as UTF-8 or declare its encoding", line
            ) from None

    def mentions(self, pattern: re.Pattern[bytes]) -> bool:
        """Whether the bytes hold what ``pattern`` seeks; looked for once for all programs."""
        if pattern not in self._mentions:
            self._mentions[pattern] = pattern.search(self.raw) is not None
        return self._mentions[pattern]

    @cached_property
    def _mentions(self) -> dict[re.Pattern[bytes], bool]:
        return {}

    @property
    def is_notebook(self) -> bool:
        return self.path.suffix == ".ipynb"

    @cached_property
    def notebook(self) -> Notebook | None:
        """The cells, where this is a notebook.  Raises ``Unreadable``."""
        if not self.is_notebook:
            return None
        try:
            return read_notebook(self.whole_text)
        except NotebookError as error:
            raise Unreadable(str(error)) from None

    @cached_property
    def text(self) -> str:
        """The Python source: the file, or the cells of the notebook one after the other."""
        return self.notebook.source if self.notebook else self.whole_text

    @cached_property
    def lines(self) -> list[str]:
        """Lines as the parser counts them: only ``\\n``, ``\\r\\n`` and ``\\r`` end one."""
        return re.split(r"\r\n|\r|\n", self.text)

    def place(self, line: int, column: int, end_line: int, end_column: int) -> Place:
        """A place from the parser's own positions, whose columns count UTF-8 bytes."""
        first = self._characters(line, column)
        last = self._characters(end_line, end_column)
        if self.notebook is None:
            return Place(self.name, line, first, end_line, last)
        cell, start = self.notebook.locate(line)
        return Place(self.name, line - start, first, end_line - start, last, cell)

    def _characters(self, line: int, column: int) -> int:
        text = self.lines[line - 1] if 0 < line <= len(self.lines) else ""
        if text.isascii():
            return column
        return len(text.encode()[:column].decode(errors="ignore"))

    def source_line(self, place: Place) -> str:
        """The line of source at which ``place`` begins, for the text report."""
        line = place.line
        if self.notebook is not None and place.cell is not None:
            line += self.notebook.start_of(place.cell)
        return self.lines[line - 1] if 0 < line <= len(self.lines) else ""


@dataclass(frozen=True)
class Words:
    """What a project calls its own helpers: names whose meaning nothing in their text tells.

    ``guards`` are functions, attributes and decorators that are true, or run, on the first rank
    only.  ``samplers`` are classes that deal each rank its share.  ``loggers`` are functions,
    classes and objects that print on one rank only.  ``scaler_wrappers`` are classes that scale,
    unscale, clip and step by themselves.  Each is the last part of the name.
    """

    guards: frozenset[str] = frozenset()
    samplers: frozenset[str] = frozenset()
    loggers: frozenset[str] = frozenset()
    scaler_wrappers: frozenset[str] = frozenset()


@dataclass(eq=False)
class Project:
    """Everything that can be part of one program, and which of it is to be linted.

    ``files`` are by path relative to ``root``, with ``/``.  ``targets`` are the keys whose
    findings are wanted; the others are there because facts cross files.
    """

    root: Path
    files: Mapping[str, SourceFile]
    targets: frozenset[str] = field(default_factory=frozenset)
    words: Words = Words()
