"""Output formats, one file each: a module here with ``render(run) -> str`` is a format.

The name of the file is what ``--format`` takes; files that begin with ``_`` are helpers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TypeAlias, cast

from ddp_lint.finding import Finding, Level, Place, Problem
from ddp_lint.rule import Rule
from ddp_lint.sources import SourceFile, Unreadable


@dataclass(frozen=True)
class Run:
    """What one run of the linter found, as every format gets it.

    ``findings`` are in the order of their places, after noqa and settings; ``suppressed`` counts
    those that noqa comments took away.  ``problems`` are files that could not be linted.
    ``files`` is the number of files that were linted, ``rules`` those that ran, by code, ``cwd``
    the folder that relative paths start from, ``sources`` the files that findings name, by that
    name.
    """

    findings: tuple[Finding, ...]
    problems: tuple[Problem, ...]
    files: int
    rules: Mapping[str, Rule]
    cwd: Path
    sources: Mapping[str, SourceFile] = field(default_factory=dict)
    suppressed: int = 0
    colour: bool = False
    statistics: bool = False

    def source_line(self, place: Place) -> str:
        """The line at which ``place`` begins; empty where the file cannot be had."""
        source = self.sources.get(place.path)
        try:
            return source.source_line(place) if source is not None else ""
        except Unreadable:
            return ""

    @property
    def by_level(self) -> Mapping[Level, int]:
        return Counter(finding.level for finding in self.findings)

    @property
    def by_code(self) -> Mapping[str, int]:
        """How many findings each code has, the most frequent first."""
        return dict(Counter(finding.code for finding in self.findings).most_common())


Render: TypeAlias = Callable[[Run], str]


def formats() -> tuple[str, ...]:
    """What ``--format`` takes; ``text`` first."""
    names = sorted(path.stem for path in Path(__file__).parent.glob("[!_]*.py"))
    return ("text", *(name for name in names if name != "text"))


def renderer(name: str) -> Render:
    """The format of that name.  Raises ``LookupError`` where there is none."""
    if name not in formats():
        raise LookupError(name)
    return cast("Render", import_module(f"ddp_lint.report.{name}").render)
