"""From a project to findings: build the programs and ask every rule about each."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ddp_lint.finding import Draft, Finding, Problem
from ddp_lint.gate import Gate, is_about_training
from ddp_lint.model import Program
from ddp_lint.model.calls import Wiring
from ddp_lint.model.codebase import CodeBase
from ddp_lint.model.modules import Module
from ddp_lint.model.values import Values
from ddp_lint.rule import Rule
from ddp_lint.sources import Project


@dataclass(frozen=True)
class Outcome:
    """Findings in the order of their places, and the files that could not be linted."""

    findings: tuple[Finding, ...]
    problems: tuple[Problem, ...]


def analyse(project: Project, rules: Iterable[Rule], *, gate: bool = True) -> Outcome:
    """All findings of ``rules`` in the project's targets, before noqa and settings.

    ``gate=False`` parses every file; it never changes the findings, only the time.
    """
    collecting = gc.isenabled()
    gc.disable()  # the model lives until the answer is there; collecting meanwhile only costs
    try:
        return _Analysis(project, list(rules), gate).run()
    finally:
        if collecting:
            gc.enable()


class _Analysis:
    def __init__(self, project: Project, rules: list[Rule], gate: bool) -> None:
        self.project = project
        self.rules = rules
        self.codebase = CodeBase(project)
        self.gate = Gate(self.codebase, open_=not gate)
        self.values = Values(self.codebase)
        self.wiring = Wiring(self.values)

    def run(self) -> Outcome:
        modules = self._load()
        wanted = {self.project.files[key].name for key in self.project.targets}
        found: dict[tuple[object, ...], Finding] = {}
        for program in self._programs(modules):
            for rule in self.rules:
                for draft in rule.check(program):
                    if draft.place.path not in wanted:
                        continue
                    finding = _finding(rule, draft)
                    key = _cause(finding)
                    # The shortest way to it is the one to show.
                    if key not in found or len(finding.related) < len(found[key].related):
                        found[key] = finding
        ordered = sorted(found.values(), key=lambda finding: _order(finding))
        problems = [p for key, p in self.codebase.problems.items() if key in self.project.targets]
        return Outcome(tuple(ordered), tuple(sorted(problems)))

    def _load(self) -> list[Module]:
        loaded = [self.values.load(key) for key in self.gate.wanted()]
        modules = [module for module in loaded if module is not None]
        for module in modules:
            for cls in module.classes:
                self.values.mro(cls)
        return modules

    def _programs(self, modules: list[Module]) -> Iterator[Program]:
        """One program for each entry point, and one for each file that none of them reaches."""
        covered: set[int] = set()
        imported = self._imported(modules)
        entries = [m for m in modules if m.is_script or m.key not in imported]
        rest = [m for m in modules if m not in entries]
        for module in [*entries, *rest]:
            if module in rest and id(module) in covered:
                continue
            program = Program(self.wiring, [module])
            covered.update(id(one) for one in program.facts.modules)
            if any(is_about_training(one.source.raw) for one in program.facts.modules):
                yield program

    def _imported(self, modules: list[Module]) -> set[str]:
        found: set[str] = set()
        for module in modules:
            for one in [*module.imports.values(), *module.stars]:
                for name in (one.module, f"{one.module}.{one.member}"):
                    key = self.codebase.find(name.lstrip("."), module.key, one.level)
                    if key is not None and key != module.key:
                        found.add(key)
        return found


def _finding(rule: Rule, draft: Draft) -> Finding:
    level = draft.level or rule.level
    return Finding(rule.code, level, draft.place, draft.message, draft.related, draft.fix)


def _cause(finding: Finding) -> tuple[object, ...]:
    place = finding.place
    return finding.code, place.path, place.cell, place.line, place.column


def _order(finding: Finding) -> tuple[str, int, int, int, str]:
    place = finding.place
    return place.path, place.cell or 0, place.line, place.column, finding.code
