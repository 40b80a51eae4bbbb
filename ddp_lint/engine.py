"""From a project to findings: build the model, ask every rule, leave out what is suppressed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ddp_lint.finding import Finding, Problem
from ddp_lint.rule import Rule
from ddp_lint.sources import Project


@dataclass(frozen=True)
class Outcome:
    """Findings in the order of their places, and the files that could not be linted."""

    findings: tuple[Finding, ...]
    problems: tuple[Problem, ...]


def analyse(project: Project, rules: Iterable[Rule]) -> Outcome:
    """All findings of ``rules`` in the project's targets, before noqa and settings."""
    raise NotImplementedError
