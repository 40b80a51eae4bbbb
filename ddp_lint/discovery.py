"""From the paths that a person names to projects: what is linted, and what facts may come from.

A file is judged together with its project, which is found from where the file lies.  So one
file alone, a folder and the whole repository get the same findings for the same file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from ddp_lint.finding import Problem
from ddp_lint.ignores import Patterns, Tracked
from ddp_lint.roots import INSTALLED, REPOSITORY, Root, holds, root_of
from ddp_lint.sources import Project, SourceFile

SUFFIXES = (".py", ".ipynb")
#: Folders that never hold a project's own source.  Those with a dot in front are left out too.
SKIPPED = frozenset({"__pycache__", "__pypackages__", "node_modules"})
#: Left out unless they are packages: builds go there, but training code also lives in ``dist``.
SKIPPED_UNLESS_PACKAGE = frozenset({"build", "dist", "_build"})
_ENVIRONMENT = frozenset({"pyvenv.cfg", "conda-meta", "CACHEDIR.TAG"})


@dataclass
class Found:
    """What lies under the paths.

    ``missing`` are paths that are not there, ``empty`` paths without anything to lint, and
    ``problems`` folders below them that could not be opened.
    """

    projects: list[Project] = field(default_factory=list)
    missing: list[Problem] = field(default_factory=list)
    empty: list[Problem] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


@dataclass
class _Scope:
    """One project while its wanted files are collected, by absolute path."""

    root: Root
    folders: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)


def discover(
    paths: Iterable[str | Path],
    *,
    cwd: Path | None = None,
    given: Mapping[Path, str] | None = None,
) -> Found:
    """The projects that hold ``paths``, each with the files asked for as its targets.

    ``given`` maps absolute paths to text that stands for what is on the disk; such a file need
    not exist.
    """
    here = os.path.abspath(cwd or Path.cwd())
    texts = {os.path.abspath(path): text for path, text in (given or {}).items()}
    found = Found()
    scopes: dict[Root, _Scope] = {}
    asked: list[tuple[str, str]] = []
    for path in dict.fromkeys(map(str, paths)):
        absolute = os.path.abspath(os.path.join(here, path))
        if os.path.isdir(absolute):
            # A link to a folder stands for the folder: else its files would be there twice.
            absolute = os.path.realpath(absolute) if os.path.islink(absolute) else absolute
            scope = _scope(scopes, absolute)
            scope.folders.append(absolute)
        elif os.path.isfile(absolute) or absolute in texts:
            if absolute not in texts and not _is_python(absolute):
                message = "is neither a Python file nor a notebook"
                found.empty.append(Problem(_shown(path), 0, message))
                continue
            scope = _scope(scopes, os.path.dirname(absolute))
            scope.files.append(absolute)
        else:
            found.missing.append(Problem(_shown(path), 0, _why_missing(absolute)))
            continue
        asked.append((path, absolute))
    _collect(scopes, found, here, texts)
    targets = {
        str(project.files[key].path) for project in found.projects for key in project.targets
    }
    found.empty += [
        Problem(_shown(path), 0, "holds no Python files or notebooks to lint")
        for path, absolute in asked
        if absolute not in targets and not any(holds(absolute, target) for target in targets)
    ]
    return found


def _scope(scopes: dict[Root, _Scope], folder: str) -> _Scope:
    root = root_of(folder)
    return scopes.setdefault(root, _Scope(root))


def _collect(
    scopes: dict[Root, _Scope], found: Found, here: str, texts: Mapping[str, str]
) -> None:
    waiting, done = list(scopes.values()), set()
    while waiting:
        scope = waiting.pop(0)
        if scope.root in done:
            continue
        done.add(scope.root)
        walk = _Walk(scope.root.path, scope.root.repository)
        deep = scope.root.deep or scope.root.base in scope.folders
        walk.visit(scope.root.base, deep=deep)
        for folder in scope.folders:
            if not walk.has_visited(folder):
                walk.visit(folder)
        for path in scope.files:
            walk.add(path)
        for nested in walk.nested:
            if any(holds(folder, nested) for folder in scope.folders):
                inner = _scope(scopes, nested)
                inner.folders.append(nested)
                waiting.append(inner)
        found.problems += [
            Problem(_name(path, here), 0, message)
            for path, message in walk.unreadable
            if any(holds(folder, path) for folder in scope.folders)
        ]
        project = _project(scope, walk, here, texts)
        if project.targets:
            found.projects.append(project)


def _project(scope: _Scope, walk: _Walk, here: str, texts: Mapping[str, str]) -> Project:
    root = scope.root.path
    name_of = _namer(root, here)
    files = {
        key: SourceFile(Path(path), name_of(key, path), texts.get(path))
        for key, path in sorted(walk.found.items())
    }
    wanted = tuple(walk.key(folder) for folder in scope.folders)
    whole = "" in wanted
    below = tuple(f"{key}/" for key in wanted)
    single = {walk.key(path) for path in scope.files}
    targets = frozenset(key for key in files if whole or key in single or key.startswith(below))
    return Project(Path(root), files, targets)


#: Each .gitignore on the way down, with the length of the key of its folder.
_Ignores: TypeAlias = tuple[tuple[int, Patterns], ...]


class _Walk:
    """The Python files below some folders, by key: the path relative to the root, with ``/``."""

    def __init__(self, root: str, repository: bool) -> None:
        self.root = root
        self.found: dict[str, str] = {}
        self.nested: list[str] = []
        self.unreadable: list[tuple[str, str]] = []
        self._tracked = Tracked(root) if repository else None
        self._visited: set[str] = set()
        self._links: list[tuple[str, str]] = []

    def key(self, path: str) -> str:
        relative = os.path.relpath(path, self.root)
        return "" if relative == "." else relative.replace(os.sep, "/")

    def has_visited(self, folder: str) -> bool:
        return self.key(folder) in self._visited

    def add(self, path: str) -> None:
        """A file that was named: taken whatever it is called and whatever ignores it."""
        self.found[self.key(path)] = path

    def visit(self, top: str, *, deep: bool = True) -> None:
        """Take all files below ``top``, which was named and so is not ignored itself.

        Not ``deep``: only those directly in it.
        """
        waiting: list[tuple[str, str, tuple[tuple[int, Patterns], ...]]] = [
            (top, self.key(top), ())
        ]
        real = set()
        while waiting:
            folder, key, ignores = waiting.pop()
            try:
                with os.scandir(folder) as scan:
                    entries = {entry.name: entry for entry in scan}
            except OSError as error:
                self.unreadable.append((folder, f"cannot be opened: {error.strerror}"))
                continue
            if folder != top and self._is_foreign(folder, entries):
                continue
            self._visited.add(key)
            if ".gitignore" in entries and (patterns := _read_patterns(folder)):
                ignores = (*ignores, (len(key) + 1 if key else 0, patterns))
            prefix = f"{key}/" if key else ""
            for name, entry in entries.items():
                if name.endswith(SUFFIXES):
                    path = prefix + name
                    if _is_file(entry) and not self._ignored(path, ignores, False):
                        if entry.is_symlink():
                            self._links.append((path, entry.path))
                        else:
                            self.found[path] = entry.path
                            real.add(path)
                elif deep and _is_walked(entry):
                    path = prefix + name
                    if not self._ignored(path, ignores, True):
                        waiting.append((entry.path, path, ignores))
        self._add_links(real)

    def _add_links(self, real: set[str]) -> None:
        """A link to a file that is there anyway says nothing new."""
        root = os.path.realpath(self.root)
        for key, path in self._links:
            target = os.path.relpath(os.path.realpath(path), root).replace(os.sep, "/")
            if target not in real:
                self.found[key] = path
        self._links.clear()

    def _is_foreign(self, folder: str, entries: Mapping[str, object]) -> bool:
        if any(name in entries for name in REPOSITORY):
            self.nested.append(folder)
            return True
        if not _ENVIRONMENT.isdisjoint(entries):
            return True
        name = os.path.basename(folder)
        return name in SKIPPED_UNLESS_PACKAGE and "__init__.py" not in entries

    def _ignored(self, path: str, ignores: _Ignores, is_folder: bool) -> bool:
        for start, patterns in reversed(ignores):
            decided = patterns.decide(path[start:], is_folder)
            if decided is not None:
                return decided and not (self._tracked is not None and self._tracked.holds(path))
        return False


def _read_patterns(folder: str) -> Patterns | None:
    try:
        with open(
            os.path.join(folder, ".gitignore"), encoding="utf-8-sig", errors="replace"
        ) as file:
            return Patterns(file)
    except OSError:
        return None  # a link to nowhere, or not ours to read: git ignores it as well


def _is_walked(entry: os.DirEntry[str]) -> bool:
    name = entry.name
    left_out = name[0] == "." or name in SKIPPED or name in INSTALLED
    return not left_out and entry.is_dir(follow_symlinks=False)


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError:  # a link that points at itself
        return False


def _is_python(path: str) -> bool:
    """By the suffix, or a script without one that says so in its first line."""
    suffix = os.path.splitext(path)[1]
    if suffix:
        return suffix in (*SUFFIXES, ".pyw")
    try:
        with open(path, "rb") as file:
            first = file.readline(200)
    except OSError:
        return False
    return first.startswith(b"#!") and b"python" in first


def _why_missing(path: str) -> str:
    if os.path.islink(path):
        return "is a link that leads nowhere"
    return "is not a file or folder" if os.path.exists(path) else "does not exist"


def _shown(path: str) -> str:
    return path.replace(os.sep, "/")


def _name(path: str, here: str) -> str:
    """How findings call a file: relative to ``here`` where it lies below, else in full."""
    path = os.path.relpath(path, here) if holds(here, path) else path
    return path.replace(os.sep, "/")


def _namer(root: str, here: str) -> Callable[[str, str], str]:
    """The same as ``_name`` for the thousands of files of one project."""
    if holds(here, root):
        before = "" if root == here else _name(root, here) + "/"
        return lambda key, path: before + key
    start = os.path.join(here, "")
    return lambda key, path: (path[len(start) :] if path.startswith(start) else path).replace(
        os.sep, "/"
    )
