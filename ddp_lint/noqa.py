"""``# noqa`` comments: which findings a person has asked not to see.

They are read as flake8 reads them, from its documentation and by comparing with it in tests.
Two things go beyond it: a comment inside a string is no comment, and a statement of several
lines may carry its comment on its first or its last line.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass

from ddp_lint.finding import Place
from ddp_lint.sources import SourceFile

_Range = tuple[int, int]
_INLINE = re.compile(r"# noqa(?::\s?(?P<codes>[A-Z]+\d+(?:[,\s]*[A-Z]+\d+)*))?", re.I)
_FILE = re.compile(r"# flake8[:=]\s*noqa", re.I)
_LAYOUT = frozenset({tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER, tokenize.ENCODING})


@dataclass(frozen=True)
class Directive:
    """One comment.  ``codes`` is None where it speaks of every code.

    ``line`` and the ``covers`` ranges (inclusive) count in the source as one text, also in a
    notebook.
    """

    line: int
    column: int
    codes: tuple[str, ...] | None
    covers: tuple[_Range, ...]
    text: str

    def suppresses(self, line: int, code: str) -> bool:
        if self.codes is not None and not code.startswith(self.codes):
            return False
        return any(first <= line <= last for first, last in self.covers)


class Noqa:
    """The directives of one file."""

    def __init__(self, source: SourceFile) -> None:
        self._source = source
        text = source.text
        self.directives = tuple(_directives(text)) if "noqa" in text.lower() else ()

    def find(self, place: Place, code: str) -> Directive | None:
        """The directive that suppresses a finding of ``code`` at ``place``, if one does."""
        line = place.line
        if self._source.notebook is not None and place.cell is not None:
            line += self._source.notebook.start_of(place.cell)
        return next((one for one in self.directives if one.suppresses(line, code)), None)


@dataclass(frozen=True)
class _Comment:
    line: int
    column: int
    text: str
    begins_line: bool


def _directives(text: str) -> Iterator[Directive]:
    end = text.count("\n") + text.count("\r") + 1
    for comment, joint, statement in _comments(text):
        if comment.begins_line and _FILE.match(comment.text):
            yield Directive(comment.line, comment.column, None, ((1, end),), comment.text)
            continue
        match = _INLINE.search(comment.text)
        if match is None:
            continue
        first, last = statement
        covers = (joint, statement) if comment.line in (first, last) else (joint,)
        codes = re.findall(r"[^,\s]+", match["codes"]) if match["codes"] else None
        yield Directive(
            comment.line, comment.column, tuple(codes) if codes else None, covers, match[0]
        )


def _comments(text: str) -> Iterator[tuple[_Comment, _Range, _Range]]:
    """Every comment with the lines that are one to flake8, and those of its whole statement.

    To flake8 a backslash and a string of several lines join lines; brackets do not.
    """
    in_joint: list[_Comment] = []
    in_statement: list[tuple[_Comment, _Range]] = []
    joint_start = statement_start = 0
    try:
        for token in tokenize.generate_tokens(io.StringIO(text, newline="").readline):
            kind, (line, column), (last, _) = token.type, token.start, token.end
            if kind in _LAYOUT:
                continue
            joint_start = joint_start or line
            if kind == tokenize.COMMENT:
                begins = not token.line[:column].strip()
                in_joint.append(_Comment(line, column, token.string, begins))
            elif kind not in (tokenize.NL, tokenize.NEWLINE):
                statement_start = statement_start or line
            if kind in (tokenize.NL, tokenize.NEWLINE):
                joint = (joint_start, last)
                in_statement += [(comment, joint) for comment in in_joint]
                in_joint, joint_start = [], 0
                if kind == tokenize.NEWLINE or not statement_start:
                    whole = (statement_start or line, last)
                    yield from ((comment, joint, whole) for comment, joint in in_statement)
                    in_statement, statement_start = [], 0
    except (tokenize.TokenError, SyntaxError):
        # Shell lines of a notebook, say: what follows is read line by line.
        yield from _comments_by_line(text, after=statement_start or joint_start)


def _comments_by_line(text: str, after: int) -> Iterator[tuple[_Comment, _Range, _Range]]:
    for number, line in enumerate(re.split(r"\r\n|\r|\n", text), 1):
        column = line.find("#")
        if number >= after and column >= 0:
            comment = _Comment(number, column, line[column:], not line[:column].strip())
            yield comment, (number, number), (number, number)
