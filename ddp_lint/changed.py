"""Which lines changed since a git revision: those of the working tree that ``git diff`` adds."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from ddp_lint.edits import Lines
from ddp_lint.finding import Place
from ddp_lint.notebook import line_in_file
from ddp_lint.settings import SettingsError
from ddp_lint.sources import SourceFile

_HUNK = re.compile(rb"@@ -\S+ \+(\d+)(?:,(\d+))? @@")
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)")
_ESCAPED = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"f": b"\f"}
_ESCAPED |= {b"v": b"\v", b'"': b'"', b"\\": b"\\"}

_Range = tuple[int, int]


class Changed:
    """The changed lines of one repository, the one that ``folder`` lies in.

    A revision that ends in ``...`` stands for the commit where HEAD left it, as in git.  Raises
    ``SettingsError`` where there is no repository or no such revision.
    """

    def __init__(self, revision: str, folder: Path) -> None:
        top = _git(folder, "rev-parse", "--show-toplevel")
        if top is None:
            raise SettingsError(f"--diff-only: {folder} is not in a git repository")
        self.top = os.path.realpath(os.fsdecode(top.removesuffix(b"\n")))
        commit = self._commit(revision)
        diff = self._ask(
            *("-c", "core.quotePath=false", "diff", "-U0", "--no-color", "--no-ext-diff"),
            *("--no-textconv", "--no-relative", "--find-renames", "--ignore-submodules"),
            *("--src-prefix=a/", "--dst-prefix=b/", commit, "--"),
        )
        self._ranges = dict(_ranges(diff))
        tracked = self._ask("ls-files", "-z", "--full-name").split(b"\0")
        self._tracked = frozenset(tracked)

    def touches(self, source: SourceFile, place: Place) -> bool:
        """Whether a line of ``place`` in the file changed.  Files git does not track are new."""
        path = os.path.relpath(os.path.realpath(source.path), self.top).replace(os.sep, "/")
        key = os.fsencode(path)
        if key not in self._tracked:
            return True
        first, last = (_line_for_git(source, place, line) for line in (place.line, place.end_line))
        return any(start <= last and first <= end for start, end in self._ranges.get(key, ()))

    def _commit(self, revision: str) -> str:
        name = revision.removesuffix("...")
        arguments = ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"]
        found = _git(Path(self.top), *arguments)
        if found is not None and name != revision:
            found = _git(Path(self.top), "merge-base", found.decode().strip(), "HEAD")
        if not found:
            raise SettingsError(
                f"--diff-only: git knows no revision {revision!r} in {self.top}; where the clone "
                "is shallow, as in CI, fetch it first"
            )
        return found.decode().strip()

    def _ask(self, *words: str) -> bytes:
        answer = _git(Path(self.top), *words)
        if answer is None:
            raise SettingsError(f"--diff-only: `git {' '.join(words)}` failed in {self.top}")
        return answer


def _git(folder: Path, *words: str) -> bytes | None:
    """What git prints; None where it fails.  Raises ``SettingsError`` where there is no git."""
    try:
        ran = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, check=False)
    except OSError as error:
        raise SettingsError(f"--diff-only needs git: {error.strerror or error}") from None
    return ran.stdout if ran.returncode == 0 else None


def _ranges(diff: bytes) -> Iterator[tuple[bytes, list[_Range]]]:
    """Path from the top of the repository, and the first and last line of each hunk."""
    path: bytes | None = None
    found: list[_Range] = []
    for line in diff.split(b"\n"):
        if line.startswith(b"diff --git "):
            if path is not None:
                yield path, found
            path, found = None, []
        elif path is None and line.startswith(b"+++ "):  # later it is an added line `++ ...`
            path = _path(line[4:])
        elif hunk := _HUNK.match(line):
            start, count = int(hunk[1]), int(hunk[2] or 1)
            if count:
                found.append((start, start + count - 1))
    if path is not None:
        yield path, found


def _path(written: bytes) -> bytes | None:
    """The path in a ``+++`` line; None for a file that is gone."""
    written = written.removesuffix(b"\t")
    if written.startswith(b'"'):
        written = _ESCAPE.sub(_unescaped, written[1:-1])
    return None if written == b"/dev/null" else written.removeprefix(b"b/")


def _unescaped(match: re.Match[bytes]) -> bytes:
    octal = match[1].isdigit()
    return bytes([int(match[1], 8)]) if octal else _ESCAPED.get(match[1], match[1])


def _line_for_git(source: SourceFile, place: Place, line: int) -> int:
    """The line of the file as git counts: it knows ``\\n`` alone, and notebooks as JSON."""
    text = source.whole_text
    if place.cell is not None:
        return line_in_file(text, place.cell, line)
    if "\r" not in text:
        return line
    return text.count("\n", 0, Lines(text).offset(line, 0)) + 1
