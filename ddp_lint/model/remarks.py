"""Layer 1, remarks: the comment lines directly above a statement, and what they speak of.

A fix that takes a statement away must not leave its explanation to the next one, nor take the
heading of what stays.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from ddp_lint.model.tree import Node, dotted
from ddp_lint.sources import SourceFile

_WAITS = r"\bwait"
_PACE = r"\bschedul|\blearning[ _-]rate|\blr\b"
#: By the name of a function: how people speak of calling it, and of nothing else.
_WORDS = {
    "barrier": rf"\bbarrier|{_WAITS}",
    "monitored_barrier": rf"\bbarrier|{_WAITS}",
    "wait_for_everyone": _WAITS,
    "synchronize": rf"\.synchronize\b|\bsynchronize\(|{_WAITS}",
    "step": _PACE,  # of a scheduler: that of an optimizer is never moved
}
#: What is as often said of the lines that follow: ``# synchronize the losses``.
_LOOSE_WORDS = {
    "barrier": r"\bsync",
    "synchronize": r"\bsync",
    "empty_cache": r"\bcache|\bmemory",
}
#: It speaks of more than one thing, is one of a numbered series, or is code or an order to a tool.
_SPEAKS_OF_MORE = re.compile(
    r"\b(and|then|also)\b|\b(step|part)\s*\d|^\W*\d+\s*[.):]"
    r"|^#+\s*[\w.\[\]]+(\s*[-+*/]?=[^=]|\(.*\)\s*$)|^#\s*(noqa|type:|fmt:|pylint:|pragma)",
    re.I | re.A,
)

_FILLERS = frozenset({"the", "all", "for", "with", "this", "self", "torch", "here", "now"})


@dataclass(frozen=True)
class Remark:
    """Comment lines from line ``first`` on; ``below`` is what follows the statement under them
    in the same paragraph, "" for nothing."""

    first: int
    lines: tuple[str, ...]
    below: str

    def subject(self, call: Node) -> Literal["call", "below", "unknown"]:
        """What it speaks of: of this call and of nothing else, or of what follows it."""
        func = getattr(call, "func", call)
        name = getattr(func, "attrname", "") or dotted(func)
        if name and self._says(_WORDS.get(name, rf"\b{re.escape(name)}\b")):
            return "unknown" if self._says_more(name) else "call"
        if name in _LOOSE_WORDS and self._says(_LOOSE_WORDS[name]):
            return "unknown" if self.below or self._says_more(name) else "call"
        said = [word for line in self.lines for word in _words(line)]
        done = set(_words(self.below))
        heads = bool(said) and 2 * sum(word in done for word in said) >= len(said)
        return "below" if heads else "unknown"

    def _says(self, words: str) -> bool:
        return any(re.search(words, line, re.I | re.A) for line in self.lines)

    def _says_more(self, name: str) -> bool:
        return any(
            _SPEAKS_OF_MORE.search(line) for line in self.lines if not _is_call_of(name, line)
        )


def remark_above(file: SourceFile, first: int, last: int) -> Remark | None:
    """The comment lines directly above the statement in the lines ``first`` to ``last``."""
    indent = _indent_of(file, first)
    start = first
    while start > 1 and _same_cell(file, start - 1, first):
        above = file.lines[start - 2]
        if not above.lstrip().startswith("#") or _indent_of(file, start - 1) != indent:
            break
        start -= 1
    if start == first:
        return None
    lines = tuple(file.lines[line - 1].strip() for line in range(start, first))
    goes_on = (
        last < len(file.lines)
        and _same_cell(file, last + 1, last)
        and bool(file.lines[last].strip())
        and _indent_of(file, last + 1) == indent
    )
    return Remark(start, lines, file.lines[last] if goes_on else "")


def _words(line: str) -> list[str]:
    """Also those within ``zero_grad``."""
    return [word for word in re.findall(r"[a-z]{3,}", line.lower()) if word not in _FILLERS]


def _is_call_of(name: str, line: str) -> bool:
    """``# dist.barrier()``: the statement once more, or its name at the start of a sentence."""
    return re.match(rf"#+\s*[\w.]*\b{re.escape(name)}\s*\(", line) is not None


def _indent_of(file: SourceFile, line: int) -> str:
    text = file.lines[line - 1]
    return text[: len(text) - len(text.lstrip())]


def _same_cell(file: SourceFile, line: int, other: int) -> bool:
    book = file.notebook
    return book is None or book.locate(line)[0] == book.locate(other)[0]
