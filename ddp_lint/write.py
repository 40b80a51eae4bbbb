"""Bring fixed files to the disk, or show them as a patch.

A file is replaced in one step, so that nobody ever reads half of it, keeps its mode, encoding,
byte order mark and line endings, and is left alone where it is not what was linted any more.
"""

from __future__ import annotations

import codecs
import contextlib
import difflib
import io
import os
import stat
import tempfile
import tokenize
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from ddp_lint.finding import Problem
from ddp_lint.fix import Fixed, FixedFile, Lint, fix
from ddp_lint.sources import Project, SourceFile


class Unwritable(Exception):
    """This file is not to be written; the message says why, without its name."""


def fix_on_disk(
    project: Project, lint: Lint, *, unsafe: bool = False
) -> tuple[Fixed, tuple[Problem, ...]]:
    """Apply the fixes and write the files.

    A fix that needs a file which cannot be written is not made in the other files either.  The
    problems are files that could not be replaced in the very end.
    """
    fixed = _fix_what_can_be_written(project, lint, unsafe)
    problems = []
    for file in fixed.files:
        try:
            write(file)
        except Unwritable as error:
            problems.append(Problem(file.name, 0, f"was not fixed: it {error}"))
    return fixed, tuple(problems)


def fix_as_patch(project: Project, lint: Lint, *, unsafe: bool = False) -> tuple[Fixed, bytes]:
    """Apply the fixes nowhere, and the patch that would: see ``patch``."""
    fixed = _fix_what_can_be_written(project, lint, unsafe)
    return fixed, patch(fixed.files)


def _fix_what_can_be_written(project: Project, lint: Lint, unsafe: bool) -> Fixed:
    keep: dict[str, str] = {}
    while True:
        fixed = fix(project, lint, unsafe=unsafe, keep=keep)
        refused = dict(_refused(fixed.files))
        if not refused:
            return fixed
        keep |= refused


def _refused(files: Iterable[FixedFile]) -> Iterator[tuple[str, str]]:
    for file in files:
        try:
            _check(file)
        except Unwritable as error:
            yield file.name, str(error)


def _check(file: FixedFile) -> None:
    """Raises ``Unwritable`` where the file must be left alone."""
    encoded(file.source, file.after)
    if encoded(file.source, file.before) != file.source.raw:
        raise Unwritable("would not keep its bytes: its encoding says one thing in two ways")
    if file.source.given is not None:
        raise Unwritable("is not a file on the disk")
    _check_unchanged(file.source)
    if not os.access(file.source.path, os.W_OK):
        raise Unwritable("is write-protected")


def _check_unchanged(source: SourceFile) -> None:
    try:
        now = source.path.read_bytes()
    except OSError as error:
        raise Unwritable(f"cannot be read any more: {error.strerror or error}") from None
    if now != source.raw:
        raise Unwritable("has changed since it was linted")


def encoded(source: SourceFile, text: str) -> bytes:
    """``text`` as bytes, in the encoding and with the byte order mark of ``source``.

    Raises ``Unwritable`` where the encoding has no such character.
    """
    encoding = "utf-8"
    if not source.is_notebook and source.given is None:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(source.raw).readline)
    mark = codecs.BOM_UTF8 if source.raw.startswith(codecs.BOM_UTF8) else b""
    try:
        return mark + text.encode("utf-8" if encoding == "utf-8-sig" else encoding)
    except UnicodeEncodeError as error:
        wanted = error.object[error.start : error.end]
        raise Unwritable(f"cannot hold {wanted!r} in its encoding, {encoding}") from None


def write(file: FixedFile) -> None:
    """Replace the file by its fixed text.  Raises ``Unwritable``; the file is then as it was."""
    _check(file)
    new = encoded(file.source, file.after)
    replace_file(file.source.path, new, just_before=lambda: _check_unchanged(file.source))


def replace_file(
    path: Path, content: bytes, just_before: Callable[[], None] = lambda: None
) -> None:
    """Put ``content`` in the place of ``path`` in one step; a link stays a link to its file.

    ``just_before`` may still raise ``Unwritable``.  Raises ``Unwritable`` itself on any error of
    the operating system.  Nothing is left behind then.
    """
    target = Path(os.path.realpath(path))
    temporary = ""
    try:
        old = target.stat() if target.exists() else None
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        _keep_mode(temporary, old)
        just_before()
        os.replace(temporary, target)
    except OSError as error:
        _remove(temporary)
        raise Unwritable(f"cannot be written: {error.strerror or error}") from None
    except BaseException:
        _remove(temporary)
        raise


def _keep_mode(temporary: str, old: os.stat_result | None) -> None:
    if old is None:
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        return
    os.chmod(temporary, stat.S_IMODE(old.st_mode))
    new = os.stat(temporary)
    if hasattr(os, "chown") and (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        # Only root may give a file away; for others the file becomes theirs, as in any editor.
        with contextlib.suppress(PermissionError):
            os.chown(temporary, old.st_uid, old.st_gid)


def _remove(temporary: str) -> None:
    if temporary:
        with contextlib.suppress(OSError):
            os.unlink(temporary)


def patch(files: Iterable[FixedFile]) -> bytes:
    """A unified diff that ``git apply`` and ``patch -p1`` take, in the files' own encodings."""
    return b"".join(map(_patch_of, files))


def _patch_of(file: FixedFile) -> bytes:
    before = _lines(file.source.raw)
    after = _lines(encoded(file.source, file.after))
    name = file.name.encode("utf-8", "surrogateescape").decode("latin-1")
    return b"".join(
        line.encode("latin-1")
        if line.endswith("\n")
        else line.encode("latin-1") + b"\n\\ No newline at end of file\n"
        for line in difflib.unified_diff(before, after, _header("a", name), _header("b", name))
    )


def _lines(content: bytes) -> list[str]:
    """Lines as git counts them: each byte one character, only ``\\n`` ends a line."""
    return io.StringIO(content.decode("latin-1"), newline="\n").readlines()


def _header(side: str, name: str) -> str:
    """A file name in the header: quoted as git does, or closed by a tab where a space is in it."""
    path = f"{side}/{name}"
    if any(sign in path for sign in '"\\') or any(ord(sign) < 32 for sign in path):
        octal = (f"\\{ord(sign):03o}" if ord(sign) < 32 else sign for sign in _slashed(path))
        return '"' + "".join(octal) + '"'
    return path + "\t" if " " in path else path


def _slashed(path: str) -> str:
    return path.replace("\\", "\\\\").replace('"', '\\"')


def summary(fixed: Fixed, *, done: bool = True) -> list[str]:
    """What was fixed and what was not, a line each, for a person."""
    lines = []
    if fixed.fixed:
        verb = "fixed" if done else "would fix"
        lines.append(
            f"{verb} {_count(len(fixed.fixed), 'finding')} in {_count(len(fixed.files), 'file')}"
        )
    for item in fixed.withdrawn:
        place = item.finding.place
        cell = "" if place.cell is None else f"cell {place.cell}:"
        lines.append(
            f"{place.path}:{cell}{place.line}: {item.finding.code} was not fixed: {item.reason}"
        )
    return lines


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
