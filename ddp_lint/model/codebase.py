"""Layer 1, the code base: every file of a project, parsed when somebody asks for it.

Where an import leads is decided as Python would at run time, for whichever script is started:
the importing file's own folder and the folders above it up to the project's root come first,
then ``src`` and other roots of packages.
"""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cached_property
from pathlib import PurePosixPath

from ddp_lint.finding import Problem
from ddp_lint.model.modules import Import, Module
from ddp_lint.model.torch_api import EXTERNAL
from ddp_lint.model.tree import Unparsable, parse
from ddp_lint.sources import Project, SourceFile, Unreadable

_STAR = re.compile(rb"import[ \t(]*\*")
_DEFINITION = re.compile(rb"\b(?:def|class)[ \t]+(\w+)")


def raw_of(file: SourceFile) -> bytes:
    """The bytes of a file that is only looked at; none where it cannot be read."""
    try:
        return file.raw
    except Unreadable:
        return b""


class CodeBase:
    """The project's modules by key (path relative to the root, with ``/``)."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.problems: dict[str, Problem] = {}
        self._modules: dict[str, Module | None] = {}

    def module(self, key: str) -> Module | None:
        """The parsed file, or None where it cannot be parsed (which is kept in ``problems``)."""
        if key not in self._modules:
            self._modules[key] = None  # while it is being parsed, and where that fails
            self._modules[key] = self._parse(key)
        return self._modules[key]

    def _parse(self, key: str) -> Module | None:
        file = self.project.files[key]
        try:
            return Module(key, file, parse(file.text, key))
        except (Unreadable, Unparsable) as error:
            self.problems[key] = Problem(file.name, error.line, str(error))
        except RecursionError:
            self.problems[key] = Problem(file.name, 0, "is nested too deeply to be analysed")
        return None

    @cached_property
    def names_defined(self) -> frozenset[str]:
        """Every function, method and class name of the project, read from the text: what a call
        may lead to must not depend on which files have been parsed so far."""
        found: set[bytes] = set()
        for file in self.project.files.values():
            try:
                found.update(_DEFINITION.findall(file.raw))
            except Unreadable:
                continue
        return frozenset(name.decode("ascii", "replace") for name in found)

    @cached_property
    def _by_tail(self) -> dict[str, list[str]]:
        """Keys by the last part of the module's name."""
        found: dict[str, list[str]] = defaultdict(list)
        for key in self.project.files:
            path = PurePosixPath(key)
            if path.suffix == ".py":
                name = path.parent.name if path.stem == "__init__" else path.stem
                found[name].append(key)
        return dict(found)

    def find(self, name: str, importer: str, level: int = 0) -> str | None:
        """The key of the module ``name`` as ``importer`` would import it, or None."""
        folder = importer.rpartition("/")[0]
        key = name, folder, level
        if key not in self._found:
            self._found[key] = self._find(name, folder, level)
        return self._found[key]

    @cached_property
    def _found(self) -> dict[tuple[str, str, int], str | None]:
        return {}

    def _find(self, name: str, folder: str, level: int) -> str | None:
        if level:
            for _ in range(level - 1):
                folder = folder.rpartition("/")[0]
            return self._at(folder, name) if name else self._package(folder)
        if not name or name.partition(".")[0] in EXTERNAL:
            return None
        return self._search(name, folder)

    def _search(self, name: str, folder: str) -> str | None:
        tail = name.rpartition(".")[2]
        if tail not in self._by_tail:
            return None
        at = folder
        while True:
            for extra in ("", "src"):
                if found := self._at(_join(at, extra), name):
                    return found
            if not at:
                break
            at = at.rpartition("/")[0]
        # A folder that the script puts on sys.path: taken only when it cannot be another.
        ending = name.replace(".", "/")
        endings = (f"/{ending}.py", f"/{ending}/__init__.py")
        candidates = [key for key in self._by_tail[tail] if f"/{key}".endswith(endings)]
        return candidates[0] if len(candidates) == 1 else None

    def _at(self, folder: str, name: str) -> str | None:
        path = _join(folder, name.replace(".", "/"))
        for key in (f"{path}/__init__.py", f"{path}.py"):
            if key in self.project.files:
                return key
        return None

    def _package(self, folder: str) -> str | None:
        key = _join(folder, "__init__.py")
        return key if key in self.project.files else None

    def may_define(self, key: str, name: str) -> bool:
        """Whether the text of a file leaves it open that the file has a global of that name.

        Parsing is what takes the time, and a package may star-import a hundred files.
        """
        file = self.project.files[key]
        if not name.isascii() or name.encode() in raw_of(file):
            return True
        is_package = key.endswith("__init__.py")
        if is_package and self._at(key.rpartition("/")[0], name) is not None:
            return True
        if key not in self._passing_on:
            self._passing_on[key] = _STAR.search(raw_of(file)) is not None
        return self._passing_on[key]

    @cached_property
    def _passing_on(self) -> dict[str, bool]:
        """Whether a file holds a star import, by its key."""
        return {}

    def submodule(self, module: Module, name: str) -> str | None:
        """The module ``name`` inside a package (a folder without ``__init__`` is none)."""
        if not module.key.endswith("__init__.py"):
            return None
        return self._at(module.key.rpartition("/")[0], name)

    def target(self, found: Import, importer: str) -> str | None:
        """The key of the module that an import names."""
        return self.find(found.module, importer, found.level)


def _join(folder: str, rest: str) -> str:
    return f"{folder}/{rest}" if folder and rest else folder or rest
