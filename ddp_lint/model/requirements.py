"""Layer 2, requirements: which versions of PyTorch a project says that it runs with.

They stand in the files that installers read: as text that is looked at and never run.  What
cannot be read, or is said in another way, says nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from ddp_lint.model.memory import remembered
from ddp_lint.model.modules import Module
from ddp_lint.sources import Project

Version: TypeAlias = tuple[int, ...]

_FILE = re.compile(
    r"(?:requirements?[\w.-]*\.txt|setup\.(?:py|cfg)|pyproject\.toml|environment[\w.-]*\.ya?ml)"
)
_COMMENT = re.compile(r"(?:^|\s)#.*")
#: ``torch>=1.7,<2``, as pip reads it.
_PIP = re.compile(
    r"(?<![\w.-])torch\s*(?:\[[^\]]*\])?\s*\(?\s*(?P<given>(?:[<>~!=]=|[<>])=?\s*\d[^;\"'()]*)"
)
#: ``- pytorch=1.7.1=py3.8_cuda11.0``
_CONDA = re.compile(
    r"^\s*-\s*[\"']?(?:[\w./-]+::)?(?:py)?torch\s*(?P<given>[<>=!~ ][<>=!~\s]*\d[^\"']*)"
)
#: ``torch = "^1.7"`` and ``torch = { version = "^1.7" }``
_POETRY = re.compile(
    r"^\s*torch\s*=\s*(?:\{.*\bversion\s*=\s*)?[\"'](?P<given>[<>=!~^\s]*\d[^\"']*)"
)
_CLAUSE = re.compile(
    r"(?P<sign>[=<>~!^]*)v?(?P<version>\d+(?:\.\d+)*)(?P<any>\.\*)?"
)  # what follows is a local version, a build or a release candidate


@dataclass(frozen=True)
class Requirement:
    """``text`` as it is written: ``oldest`` is still allowed, ``end`` is not."""

    text: str
    oldest: Version | None
    end: Version | None

    def excludes(self, version: Version) -> bool:
        """Whether nothing as new as ``version`` is allowed."""
        return self.end is not None and version >= self.end

    def allows_older(self, version: Version) -> bool:
        """Whether it says that something older than ``version`` will do."""
        return self.oldest is not None and self.oldest < version


def torch_required(project: Project, module: Module) -> tuple[Requirement, ...]:
    """What the nearest folder around ``module``, within its project, says about PyTorch."""
    path = module.source.path
    if not path.is_relative_to(project.root):
        return ()  # a text without a place
    for folder in path.parents:
        if found := _in_folder(folder):
            return found
        if folder == project.root:
            break
    return ()


@remembered
def _in_folder(folder: Path) -> tuple[Requirement, ...]:
    try:
        with os.scandir(folder) as entries:
            names = sorted(e.name for e in entries if _FILE.fullmatch(e.name) and e.is_file())
    except OSError:
        return ()  # the walk through the project has told about it
    return tuple(
        requirement
        for name in names
        for requirement in read_requirements(name, _read(folder / name))
    )


def _read(path: Path) -> str:
    """The text of a file; nothing where it is not ours to read."""
    try:
        raw = path.read_bytes()
    except OSError:
        return ""
    # `pip freeze > requirements.txt` in PowerShell writes UTF-16.
    encoding = "utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8"
    return raw.decode(encoding, errors="replace")


def read_requirements(name: str, text: str) -> Iterator[Requirement]:
    """The bounds of PyTorch in the ``text`` of a file called ``name``."""
    patterns = [_PIP]
    if name.endswith((".yml", ".yaml")):
        patterns = [_CONDA]
    elif name.endswith(".toml"):
        patterns = [_PIP, _POETRY]
    for line in text.splitlines():
        said = _COMMENT.sub("", line)
        for pattern in patterns:
            for match in pattern.finditer(said):
                if found := _requirement(match["given"]):
                    yield found


def _requirement(given: str) -> Requirement | None:
    """What some clauses say together; None where none of them is a bound."""
    if "|" in given:
        return None  # one or the other
    tight = re.sub(r"(?<=[=<>~!^])\s+", "", given.strip())
    parts = [part for part in re.split(r"[\s,]+", tight) if _CLAUSE.match(part)]
    bounds = [bound for part in parts if (bound := _bounds(part)) is not None]
    if not bounds:
        return None
    oldest = max((start for start, _ in bounds if start is not None), default=None)
    end = min((stop for _, stop in bounds if stop is not None), default=None)
    first = "" if parts[0][0] in "=<>~!^" else " "
    return Requirement(f"torch{first}{','.join(parts)}", oldest, end)


def _bounds(clause: str) -> tuple[Version | None, Version | None] | None:
    """The oldest version that a clause allows, and the one before which it ends."""
    match = _CLAUSE.match(clause)
    assert match is not None
    version = tuple(map(int, match["version"].split(".")))
    match match["sign"]:
        case ">=" | ">":
            return version, None
        case "<":
            return None, _without_zeros(version)
        case "<=":
            return None, _next(version)
        case "" | "=" | "==" | "===":
            return version, _next(version)
        case "~=":
            return version, _next(version[:-1] or version)
        case "~":
            return version, _next(version[:2])
        case "^":
            leading = next((at for at, part in enumerate(version) if part), len(version) - 1)
            return version, _next(version[: leading + 1])
    return None


def _next(version: Version) -> Version:
    """The first version that does not begin like this one."""
    return (*version[:-1], version[-1] + 1)


def _without_zeros(version: Version) -> Version:
    """``2.3.0`` begins where ``2.3`` does."""
    while len(version) > 1 and not version[-1]:
        version = version[:-1]
    return version
