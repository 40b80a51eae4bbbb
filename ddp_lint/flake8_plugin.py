"""The same linter, as flake8 sees it: the findings of one file, judged with its project.

flake8 hands over one file after the other.  The first one of a project has the whole project
linted and the answer is kept for the others, in each of flake8's processes and for one run of
it.  A text that is not what lies on the disk (an editor's buffer on stdin) is linted anew.
"""

from __future__ import annotations

import argparse
import ast
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ddp_lint import __version__

if TYPE_CHECKING:
    from ddp_lint.api import Linter
    from ddp_lint.finding import Finding
    from ddp_lint.sources import Project

_Result = tuple[int, int, str, type["Plugin"]]


class Plugin:
    """flake8 makes one for every file.  The tree is left as it is: other plugins get it too."""

    name = "ddp-lint"
    version = __version__
    _state: _State | None = None

    def __init__(self, tree: ast.AST, filename: str, lines: list[str]) -> None:
        self._path = os.path.abspath(filename)
        self._text = "".join(lines)

    @staticmethod
    def add_options(manager: Any) -> None:
        manager.add_option(
            "--ddp-lint-config",
            parse_from_config=True,
            normalize_paths=True,
            metavar="FILE",
            help="The pyproject.toml with the settings for ddp-lint (default: the nearest).",
        )
        manager.add_option(
            "--ddp-lint-isolated",
            parse_from_config=True,
            action="store_true",
            default=False,
            help="Let ddp-lint read no pyproject.toml.",
        )

    @classmethod
    def parse_options(cls, options: argparse.Namespace) -> None:
        """Called once for each run of flake8, before its processes start."""
        cls._state = _State(options)

    def run(self) -> Iterator[_Result]:
        from ddp_lint.settings import SettingsError

        state = Plugin._state
        assert state is not None, "flake8 parses the options first"
        try:
            found = state.findings(self._path, self._text)
        except SettingsError as error:
            yield 1, 0, f"DDP000 {error}", type(self)
            return
        for finding in found:
            place = finding.place
            yield place.line, place.column, f"{finding.code} {finding.message}", type(self)


@dataclass
class _Known:
    """A project that was linted as it lies on the disk, and its findings by absolute path."""

    project: Project
    findings: dict[str, list[Finding]]

    def has(self, path: str, text: str) -> bool:
        """Whether ``path`` is among what was linted, with that ``text``."""
        key = os.path.relpath(path, self.project.root).replace(os.sep, "/")
        return key in self.project.targets and _same(self.project, key, text)


class _State:
    """What one run of flake8 asks for and has learnt."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._selected = (*(options.select or ()), *(options.extend_select or ()))
        self._linter: Linter | None = None
        self._known: dict[str, _Known] = {}

    def findings(self, path: str, text: str) -> list[Finding]:
        """The findings for the file at ``path`` (absolute) when it holds ``text``."""
        known = self._of_project(path, text)
        if known is not None and known.has(path, text):
            found = known.findings.get(path, [])
        else:
            found = self._alone(path, text)
        return [one for one in found if one.level != "note" or self._is_selected(one.code)]

    def _is_selected(self, code: str) -> bool:
        return bool(self._selected) and code.startswith(self._selected)

    def _of_project(self, path: str, text: str) -> _Known | None:
        """The findings of the project as it is on the disk; None where ``text`` is not there."""
        from ddp_lint.discovery import discover
        from ddp_lint.roots import root_of

        root = root_of(os.path.dirname(path))
        if root.base not in self._known:
            if not _on_disk(path, text):
                return None
            projects = discover([root.base]).projects
            project = next((one for one in projects if str(one.root) == root.path), None)
            if project is None:
                return None
            self._known[root.base] = self._lint(project)
        return self._known[root.base]

    def _alone(self, path: str, text: str) -> list[Finding]:
        """The findings of this one file, its project around it, when it holds ``text``."""
        from ddp_lint.discovery import discover

        (project,) = discover([path], given={Path(path): text}).projects
        return self._lint(project).findings.get(path, [])

    def _lint(self, project: Project) -> _Known:
        linter = self._get_linter()
        wanted = linter.without_excluded(project)
        found: dict[str, list[Finding]] = {}
        paths = {source.name: str(source.path) for source in project.files.values()}
        for finding in linter.findings(wanted) if wanted.targets else ():
            found.setdefault(paths[finding.place.path], []).append(finding)
        return _Known(project, found)

    def _get_linter(self) -> Linter:
        if self._linter is None:
            from ddp_lint.api import Linter, Options
            from ddp_lint.registry import all_rules

            config = self._options.ddp_lint_config
            off = [rule.code for rule in all_rules().values() if not rule.on]
            options = Options(
                extend_select=tuple(code for code in off if code in self._selected),
                config=Path(config) if config else None,
                isolated=self._options.ddp_lint_isolated,
                noqa=not self._options.disable_noqa,
            )
            self._linter = Linter(options)
        return self._linter


def _same(project: Project, key: str, text: str) -> bool:
    """flake8 reads lines as Python does: any line ending is ``\\n`` to it."""
    from ddp_lint.sources import Unreadable

    try:
        on_disk = project.files[key].whole_text
    except Unreadable:
        return False
    return _newlines(on_disk) == _newlines(text)


def _on_disk(path: str, text: str) -> bool:
    from ddp_lint.sources import Project, SourceFile

    here = Project(Path(path).parent, {"it": SourceFile(Path(path), path)})
    return _same(here, "it", text)


def _newlines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")
