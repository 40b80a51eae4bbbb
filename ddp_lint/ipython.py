"""IPython's own syntax, masked so that a cell parses as Python with every column in its place.

A line of a cell may be a magic (``%time step()``), a command for the shell (``!nvidia-smi``) or a
question (``model?``), and a first line ``%%name`` hands the whole cell to something else.  None of
it is Python.  What a magic runs *is* (``%time step()``, ``%%capture``), and stays.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

#: Cell magics whose body is run as Python in this very program.
_RUN_THE_CELL = frozenset(
    (
        "capture",
        "debug",
        "heat",
        "lprun",
        "memit",
        "mprun",
        "prun",
        "scalene",
        "snakeviz",
        "time",
        "timeit",
        "wandb",
    )
)
#: Line magics that run the Python statement behind them.
_RUN_THE_LINE = re.compile(r"%(?:time|memit|prun|snakeviz|timeit)[ \t]+(?=[^-\s])")
_ASSIGNED = re.compile(
    r"(?P<target>[ \t]*[\w.,\[\]'\" \t*]+?[ \t]*=[ \t]*)(?P<rest>[!%][^=].*)", re.S
)
_QUESTION = re.compile(r"[ \t]*(?:\?{1,2}[ \t]*[\w.*%\[\]]+|%{0,2}[\w.*\[\]'\"]+\?{1,2})[ \t;]*$")
_CELL_MAGIC = re.compile(r"\s*%%(\w+)")
_LINES = re.compile(r"(.*?)(\r\n|\r|\n|\Z)", re.S)
_STRING_START = re.compile(r"\"\"\"|'''|\"|'")


def mask(code: str) -> str:
    """``code`` with IPython's syntax replaced: as many lines, and Python where it was Python."""
    if not any(sign in code for sign in "%!?;,/"):
        return code
    lines = [(text, end) for text, end in _LINES.findall(code) if text or end]
    first = next((at for at, (text, _) in enumerate(lines) if text.strip()), 0)
    magic = _CELL_MAGIC.match(lines[first][0]) if lines else None
    if magic is not None and magic[1] not in _RUN_THE_CELL:
        return "".join(end for _, end in lines)
    if magic is not None:
        lines[first] = ("", lines[first][1])
    return "".join(_masked(lines))


def _masked(lines: list[tuple[str, str]]) -> Iterator[str]:
    state = _State()
    continued = False  # a masked line ended in a backslash: the next belongs to it
    for text, end in lines:
        if continued:
            continued = text.endswith("\\")
            yield end
            continue
        replaced = _python_for(text) if state.between_statements else None
        if replaced is None:
            state.read(text)
            yield text + end
            continue
        continued = text.endswith("\\")
        yield replaced + end


def _python_for(line: str) -> str | None:
    """What stands for ``line``, the first of a statement; None where it is Python already."""
    body = line.lstrip(" \t")
    indent = line[: len(line) - len(body)]
    if body.startswith("%") and (runs := _RUN_THE_LINE.match(body)):
        lead = "pass".ljust(runs.end() - 1) + ";"
        if _parses(lead + body[runs.end() :]):
            return indent + lead + body[runs.end() :]
    if body[:1] in ("%", "!", "?", "/", ",", ";") and body not in (",", ";"):
        return indent + "pass".ljust(len(body))
    if body.endswith(("?", "?;")) and _QUESTION.match(line):
        return indent + "pass".ljust(len(body))
    if (assigned := _ASSIGNED.fullmatch(line)) and _parses(f"{assigned['target'].strip()} _"):
        return assigned["target"] + "_".ljust(len(assigned["rest"]))
    return None


def _parses(code: str) -> bool:
    try:
        ast.parse(code)
    except (SyntaxError, ValueError):
        return False
    return True


class _State:
    """Whether the next line begins a statement, or goes on with a bracket, string or backslash."""

    def __init__(self) -> None:
        self._quote = ""
        self._depth = 0
        self._backslash = False

    @property
    def between_statements(self) -> bool:
        return not (self._quote or self._depth or self._backslash)

    def read(self, line: str) -> None:
        """Take in one line, without its line ending."""
        self._backslash = False
        at = 0
        while at < len(line):
            at = self._in_string(line, at) if self._quote else self._in_code(line, at)

    def _in_string(self, line: str, at: int) -> int:
        if line[at] == "\\":
            return at + 2
        if line.startswith(self._quote, at):
            at += len(self._quote)
            self._quote = ""
            return at
        if at == len(line) - 1 and len(self._quote) == 1:
            self._quote = ""  # a string that is never closed: not our error to report
        return at + 1

    def _in_code(self, line: str, at: int) -> int:
        sign = line[at]
        if sign == "#":
            return len(line)
        if opened := _STRING_START.match(line, at):
            self._quote = (
                opened[0] if at + len(opened[0]) < len(line) or len(opened[0]) == 3 else ""
            )
            return opened.end()
        if sign in "([{":
            self._depth += 1
        elif sign in ")]}":
            self._depth = max(self._depth - 1, 0)
        elif sign == "\\" and at == len(line) - 1:
            self._backslash = True
        return at + 1
