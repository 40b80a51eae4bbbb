"""Which project a file belongs to: found from where it lies, so that everyone finds the same."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from functools import lru_cache

INSTALLED = frozenset({"site-packages", "dist-packages"})
REPOSITORY = (".git", ".hg")
_TOP = frozenset(
    {
        *("pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "environment.yml"),
        *("environment.yaml", "Pipfile", "uv.lock", "poetry.lock", "tox.ini", ".gitignore"),
        *("README", "README.md", "README.rst", "README.txt", "LICENSE", "LICENSE.md"),
        *("LICENSE.txt", ".pre-commit-config.yaml", ".flake8", "Dockerfile"),
    }
)


@dataclass(frozen=True)
class Root:
    """A project's folder.

    ``base`` is walked; it lies below ``path`` only for a package.  Not ``deep``: only the files
    directly in it count, because what lies below is not about them (the home folder, say).
    """

    path: str
    base: str
    repository: bool
    deep: bool = True


@lru_cache(maxsize=4096)
def root_of(folder: str) -> Root:
    """The project that files directly in ``folder`` (absolute) belong to.

    It is the nearest repository; else the highest folder that looks like the top of a project;
    else as far up as Python files lie side by side.  Never the home folder, a temporary folder
    or the root of the file system, and never more than one package of an environment.
    """
    if _is_shared(folder):
        return Root(folder, folder, repository=False, deep=False)
    above = _candidates(folder)
    for path in above:
        if any(os.path.exists(os.path.join(path, name)) for name in REPOSITORY):
            return Root(path, path, repository=True)
    listed = {path: _listing(path) for path in above}
    tops = [path for path in above if not _TOP.isdisjoint(listed[path])]
    top = tops[-1] if tops else folder
    if not tops:
        for path in above[1:]:
            if not any(name.endswith(".py") for name in listed[path]):
                break
            top = path
        base = top
        while "__init__.py" in _listing(top) and os.path.dirname(top) != top:
            base, top = top, os.path.dirname(top)
        return Root(top, base, repository=False)
    return Root(top, top, repository=False)


def _candidates(folder: str) -> list[str]:
    """``folder`` and those above it that may be the root of a project."""
    found = [folder]
    while True:
        parent = os.path.dirname(folder)
        if parent == folder or os.path.basename(parent) in INSTALLED or _is_shared(parent):
            return found
        found.append(folder := parent)


def _is_shared(folder: str) -> bool:
    """Whether the folder holds many people's or many projects' things."""
    temporary = {os.path.realpath(path) for path in (tempfile.gettempdir(), "/tmp", "/var/tmp")}
    is_root = os.path.dirname(folder) == folder
    return (
        is_root or holds(folder, os.path.expanduser("~")) or os.path.realpath(folder) in temporary
    )


def _listing(folder: str) -> frozenset[str]:
    try:
        return frozenset(os.listdir(folder))
    except OSError:
        return frozenset()


def holds(folder: str, path: str) -> bool:
    return path == folder or path.startswith(os.path.join(folder, ""))
