"""From a project to findings: build the programs and ask every rule about each."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ddp_lint.finding import Draft, Finding, Problem
from ddp_lint.gate import Gate, is_about_training
from ddp_lint.model import Program
from ddp_lint.model.calls import Wiring
from ddp_lint.model.codebase import CodeBase
from ddp_lint.model.memory import forget
from ddp_lint.model.modules import Module
from ddp_lint.model.values import Values
from ddp_lint.rule import Rule
from ddp_lint.sources import Project

#: From this many programs on, several processes are faster than one.
_WORTH_SHARING = 8
#: What forked processes share: the analysis and its entry points.
_SHARED: list[tuple[_Analysis, list[Module]] | None] = [None]


@dataclass(frozen=True)
class Outcome:
    """Findings in the order of their places, and the files that could not be linted."""

    findings: tuple[Finding, ...]
    problems: tuple[Problem, ...]


def analyse(
    project: Project, rules: Iterable[Rule], *, gate: bool = True, jobs: int = 1
) -> Outcome:
    """All findings of ``rules`` in the project's targets, before noqa and settings.

    ``gate=False`` parses every file, and ``jobs`` processes share the programs among them; both
    never change the findings, only the time.
    """
    collecting = gc.isenabled()
    gc.disable()  # the model lives until the answer is there; collecting meanwhile only costs
    try:
        return _Analysis(project, list(rules), gate).run(jobs)
    finally:
        forget()
        if collecting:
            gc.enable()


@dataclass
class _Found:
    """Findings by their cause, and which files were part of a program."""

    findings: dict[tuple[object, ...], Finding] = field(default_factory=dict)
    covered: set[str] = field(default_factory=set)
    problems: dict[str, Problem] = field(default_factory=dict)
    broken: set[Problem] = field(default_factory=set)

    def add(self, finding: Finding) -> None:
        key = _cause(finding)
        # The shortest way to it is the one to show.
        known = self.findings.get(key)
        if known is None or _shown_before(finding, known):
            self.findings[key] = finding

    def merge(self, other: _Found) -> None:
        for finding in other.findings.values():
            self.add(finding)
        self.covered |= other.covered
        self.problems.update(other.problems)
        self.broken |= other.broken


def _shown_before(first: Finding, second: Finding) -> bool:
    """Of two findings of one cause, which to show: the same however programs are shared out."""
    return (len(first.related), first.message, str(first.related)) < (
        len(second.related), second.message, str(second.related)
    )  # fmt: skip


class _Analysis:
    def __init__(self, project: Project, rules: list[Rule], gate: bool) -> None:
        self.project = project
        self.rules = rules
        self.codebase = CodeBase(project)
        self.gate = Gate(self.codebase)
        self.parses_all = not gate
        self.values = Values(self.codebase)
        self.wiring = Wiring(self.values)

    def run(self, jobs: int) -> Outcome:
        modules = self._load()
        imported = self._imported(modules)
        entries = [m for m in modules if m.is_script or m.key not in imported]
        rest = [m for m in modules if m not in entries]
        found = _Found()
        if jobs > 1 and len(entries) >= _WORTH_SHARING and hasattr(os, "fork"):
            for part in self._shared(entries, min(jobs, len(entries))):
                found.merge(part)
        else:
            self._ask(entries, found)
        for module in rest:
            if module.key not in found.covered:
                self._ask([module], found)
        problems = dict(found.problems)
        problems.update(self.codebase.problems)
        wanted = [p for key, p in problems.items() if key in self.project.targets]
        ordered = sorted(found.findings.values(), key=_order)
        return Outcome(tuple(ordered), tuple(sorted({*wanted, *found.broken})))

    def _shared(self, entries: list[Module], jobs: int) -> Iterator[_Found]:
        """What ``jobs`` processes find, program by program, each taking the next when it is done.

        They are forked, so that what is parsed by now is there in each of them.  Long scripts
        go first: the last one to end is what people wait for.
        """
        from concurrent.futures import ProcessPoolExecutor  # slow to import, not always wanted
        from multiprocessing import get_context

        _SHARED[0] = self, sorted(entries, key=lambda one: -len(one.source.raw))
        try:
            with ProcessPoolExecutor(jobs, mp_context=get_context("fork")) as pool:
                yield from pool.map(_ask_one, range(len(entries)))
        finally:
            _SHARED[0] = None

    def _ask(self, entries: list[Module], found: _Found) -> None:
        """Every rule about the program of each entry point."""
        wanted = {self.project.files[key].name for key in self.project.targets}
        for module in entries:
            try:
                program = Program(self.wiring, [module])
                reached = program.facts.modules
            except Exception as error:  # a fault of ours must not hide what else can be said
                found.broken.add(_given_up(module, "the program that starts here", error))
                continue
            found.covered.update(one.key for one in reached)
            if not any(is_about_training(one.source.raw) for one in reached):
                continue
            for rule in self.rules:
                try:
                    drafts = list(rule.check(program))
                except Exception as error:
                    what = f"{rule.code} in the program that starts here"
                    found.broken.add(_given_up(module, what, error))
                    continue
                for draft in drafts:
                    if draft.place.path in wanted:
                        found.add(_finding(rule, draft))
        found.problems.update(self.codebase.problems)

    def _load(self) -> list[Module]:
        """The files in which programs may start."""
        loaded = [self.values.load(key) for key in self.gate.wanted()]
        modules = [module for module in loaded if module is not None]
        for module in modules:
            for cls in module.classes:
                self.values.mro(cls)
        self.values.settled = True
        if self.parses_all:
            for key in self.project.files:
                self.values.load(key)
        return modules

    def _imported(self, modules: list[Module]) -> set[str]:
        found: set[str] = set()
        for module in modules:
            for one in [*module.imports.values(), *module.stars]:
                for name in (one.module, f"{one.module}.{one.member}"):
                    key = self.codebase.find(name.lstrip("."), module.key, one.level)
                    if key is not None and key != module.key:
                        found.add(key)
        return found


def _ask_one(number: int) -> _Found:
    assert _SHARED[0] is not None
    analysis, entries = _SHARED[0]
    found = _Found()
    analysis._ask([entries[number]], found)
    return found


def _given_up(module: Module, what: str, error: Exception) -> Problem:
    """One line about a fault of ours: the user's files are as fine as they were."""
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    where = f" at {Path(at.tb_frame.f_code.co_filename).name}:{at.tb_lineno}" if at else ""
    said = " ".join(str(error).split())[:200]
    fault = f"{type(error).__name__}{where}" + (f": {said}" if said else "")
    return Problem(
        module.source.name, 0, f"ddp-lint could not decide {what} ({fault}); please report it"
    )


def _finding(rule: Rule, draft: Draft) -> Finding:
    level = draft.level or rule.level
    return Finding(rule.code, level, draft.place, draft.message, draft.related, draft.fix)


def _cause(finding: Finding) -> tuple[object, ...]:
    place = finding.place
    return finding.code, place.path, place.cell, place.line, place.column


def _order(finding: Finding) -> tuple[str, int, int, int, str]:
    place = finding.place
    return place.path, place.cell or 0, place.line, place.column, finding.code
