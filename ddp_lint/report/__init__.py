"""What a run found, as every output format gets it: one module here per format.

Each has ``def render(run: Run) -> str``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ddp_lint.finding import Finding, Place, Problem
from ddp_lint.rule import Rule
from ddp_lint.sources import SourceFile, Unreadable


@dataclass(frozen=True)
class Run:
    """One run of the linter.

    ``files`` is the number of files that were linted, ``rules`` are those that were asked, by
    code, ``cwd`` is the folder that relative paths start in, and ``sources`` are the files by the
    ``path`` of a place.
    """

    findings: tuple[Finding, ...]
    problems: tuple[Problem, ...]
    files: int
    rules: Mapping[str, Rule]
    cwd: Path
    sources: Mapping[str, SourceFile] = field(default_factory=dict)

    def source_line(self, place: Place) -> str:
        """The line at which ``place`` begins; empty where the file cannot be had."""
        source = self.sources.get(place.path)
        try:
            return source.source_line(place) if source is not None else ""
        except Unreadable:
            return ""
