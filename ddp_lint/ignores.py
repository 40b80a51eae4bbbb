"""Patterns as in .gitignore, and what git keeps in spite of them.

One matcher serves the .gitignore files of a project, ``exclude`` and ``per-file-ignores``.
Patterns are joined into few regular expressions, because a repository asks some thousand times.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterable
from functools import lru_cache
from itertools import groupby


class Patterns:
    """Lines of one .gitignore; the last line that matches decides."""

    def __init__(self, lines: Iterable[str]) -> None:
        parsed = [line for line in map(_parse, lines) if line is not None]
        self._groups = [
            (negated, _join(list(group)))
            for negated, group in groupby(reversed(parsed), lambda line: line[0])
        ]

    def __bool__(self) -> bool:
        return bool(self._groups)

    def decide(self, path: str, is_folder: bool) -> bool | None:
        """Whether ``path`` (relative, with ``/``) is ignored; None where no line speaks of it."""
        name = path.rpartition("/")[2]
        for negated, (by_name, by_path) in self._groups:
            matched = by_name[is_folder].match(name) or by_path[is_folder].match(path)
            if matched:
                return not negated
        return None

    def covers(self, path: str) -> bool:
        """Whether the file ``path`` or a folder that holds it is ignored."""
        parts = path.split("/")
        above = ("/".join(parts[:end]) for end in range(1, len(parts)))
        return any(self.decide(folder, True) for folder in above) or bool(self.decide(path, False))


_Line = tuple[bool, bool, bool, str]  # negated, only folders, matched against the whole path
_Pair = tuple["re.Pattern[str]", "re.Pattern[str]"]  # for files, for folders
_NEVER = "(?!)"


def _parse(line: str) -> _Line | None:
    line = re.sub(r"(?<!\\)\s+$", "", line.rstrip("\r\n"))
    if not line or line.startswith("#"):
        return None
    negated = line.startswith("!")
    line = line[negated:]
    only_folders = line.endswith("/")
    line = line.rstrip("/") if only_folders else line
    whole_path = "/" in line
    if line in ("", "**"):
        return (negated, only_folders, False, ".*") if line else None
    return negated, only_folders, whole_path, _translate(line.removeprefix("/"))


def _join(lines: list[_Line]) -> tuple[_Pair, _Pair]:
    def regex(folders: bool, whole: bool) -> re.Pattern[str]:
        sources = [
            source
            for _, only_folders, whole_path, source in lines
            if whole_path == whole and (folders or not only_folders)
        ]
        return re.compile(f"(?:{'|'.join(sources) or _NEVER})\\Z", re.S)

    return (regex(False, False), regex(True, False)), (regex(False, True), regex(True, True))


def _translate(pattern: str) -> str:
    parts = pattern.split("/")
    source = ""
    for at, part in enumerate(parts):
        last = at == len(parts) - 1
        if part == "**":
            source += ".+" if last else "(?:.*/)?"
        else:
            source += _translate_part(part) + ("" if last else "/")
    return source


@lru_cache(maxsize=1024)
def _translate_part(part: str) -> str:
    source, at = "", 0
    while at < len(part):
        letter = part[at]
        at += 1
        if letter == "*":
            source += "[^/]*"
        elif letter == "?":
            source += "[^/]"
        elif letter == "\\" and at < len(part):
            source += re.escape(part[at])
            at += 1
        elif letter == "[":
            end = part.find("]", at + (2 if part[at : at + 1] in ("!", "^") else 1))
            if end < 0:
                return _NEVER  # git: such a pattern matches nothing
            source += _translate_set(part[at:end])
            at = end + 1
        else:
            source += re.escape(letter)
    return re.sub(r"(?:\[\^/\]\*)+", "[^/]*", source)


def _translate_set(inside: str) -> str:
    negated = inside[:1] in ("!", "^")
    inside = re.sub(r"\\(.)", r"\1", inside[negated:])
    inside = re.sub(r"([\\\[\]^&~|])", r"\\\1", inside)
    source = f"(?!/)[{'^' if negated else ''}{inside}]"
    try:
        re.compile(source)
    except re.error:  # a range that runs backwards holds nothing
        return _NEVER
    return source


class Tracked:
    """The files that a repository's index lists: git keeps them whatever .gitignore says."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._names: frozenset[str] | None = None

    def holds(self, path: str) -> bool:
        """Whether ``path``, a file or a folder, is in the index (a folder: with a file below)."""
        if self._names is None:
            self._names = _read_index(self._root)
        return path in self._names


def _read_index(root: str) -> frozenset[str]:
    """Python files in the index and the folders above them; none where there is no index."""
    try:
        with open(os.path.join(_git_folder(root), "index"), "rb") as file:
            data = file.read()
    except OSError:
        return frozenset()
    signature, version, count = struct.unpack_from(">4sII", data)
    if signature != b"DIRC" or version not in (2, 3, 4):
        return frozenset()
    names: set[str] = set()
    at, previous = 12, b""
    for _ in range(count):
        start, (flags,) = at, struct.unpack_from(">H", data, at + 60)
        at += 64 if version >= 3 and flags & 0x4000 else 62
        if version == 4:
            dropped, at = _read_offset(data, at)
            previous = previous[: len(previous) - dropped]
        end = data.index(b"\0", at)
        name = data[at:end]
        if version == 4:
            previous = name = previous + name
            at = end + 1
        else:
            at = start + ((end - start) // 8 + 1) * 8
        if name.endswith((b".py", b".ipynb")):
            path = name.decode(errors="surrogateescape")
            while path and path not in names:
                names.add(path)
                path = path.rpartition("/")[0]
    return frozenset(names)


def _read_offset(data: bytes, at: int) -> tuple[int, int]:
    """The number of variable width that starts at ``at``, and where the next byte is."""
    byte = data[at]
    value = byte & 0x7F
    while byte & 0x80:
        at += 1
        byte = data[at]
        value = ((value + 1) << 7) | (byte & 0x7F)
    return value, at + 1


def _git_folder(root: str) -> str:
    """``root/.git``, or where that file points (a worktree, a submodule)."""
    path = os.path.join(root, ".git")
    if os.path.isfile(path):
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            path = os.path.join(root, file.read().partition("gitdir:")[2].strip())
    return path
