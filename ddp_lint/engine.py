"""From a project to findings: choose what to parse, build the programs, ask every rule."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ddp_lint.finding import Draft, Finding, Problem
from ddp_lint.model import Program
from ddp_lint.model.calls import Wiring
from ddp_lint.model.codebase import CodeBase
from ddp_lint.model.modules import Module
from ddp_lint.model.values import Values
from ddp_lint.rule import Rule
from ddp_lint.sources import Project, SourceFile, Unreadable

#: A file can hold a finding only if it holds one of these.
_GATE = re.compile(
    rb"backward\s*\(|DataLoader|DistributedSampler|DistributedDataParallel|FullyShardedDataParallel"
    rb"|fully_shard|DataParallel|init_process_group|torch\.distributed|GradScaler|autocast"
    rb"|torch\.save|torch\.load|\.save_checkpoint|save_state|Dataset\b|training_step|zero_grad"
    rb"|is_main_process|set_epoch|deepspeed|Accelerator|Fabric\(|no_sync|cuda\.Stream"
    rb"|Trainer\b|Callback\b|LightningModule|Hook\b"
)

#: A program is about training if a file it reaches holds one of these; of others no rule speaks.
_TRAINING = re.compile(
    rb"backward\s*\(|DataLoader|Dataset\b|init_process_group|Distributed|DataParallel|fully_shard"
    rb"|torch\.distributed|training_step|GradScaler|deepspeed|Accelerator|Fabric\(|cuda\.amp"
    rb"|torch\.save|is_main_process|set_epoch|\.barrier\(|Trainer|Callback\b|Hook\b"
)


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
        self.gate = gate
        self.codebase = CodeBase(project)
        self.values = Values(self.codebase)
        self.wiring = Wiring(self.values)

    def run(self) -> Outcome:
        modules = self._load()
        found: dict[tuple[object, ...], Finding] = {}
        names = {file.name for key, file in self.project.files.items() if key in self.project.targets}
        for program in self._programs(modules):
            for rule in self.rules:
                for draft in rule.check(program):
                    if draft.place.path not in names:
                        continue
                    finding = _finding(rule, draft)
                    key = (finding.code, finding.place.path, finding.place.cell, finding.place.line,
                           finding.place.column)  # fmt: skip
                    if key not in found or len(finding.related) < len(found[key].related):
                        found[key] = finding
        ordered = sorted(found.values(), key=lambda finding: _order(finding))
        problems = [p for key, p in self.codebase.problems.items() if key in self.project.targets]
        return Outcome(tuple(ordered), tuple(sorted(problems)))

    def _load(self) -> list[Module]:
        modules = []
        for key, file in self.project.files.items():
            if not self._matters(key, file):
                continue
            module = self.values.load(key)
            if module is not None:
                modules.append(module)
        for module in modules:
            for cls in module.classes:
                self.values.mro(cls)
        return modules

    def _matters(self, key: str, file: SourceFile) -> bool:
        """Whether the file is parsed for its own sake; others are when an import leads there."""
        try:
            return not self.gate or _GATE.search(file.raw) is not None
        except Unreadable as error:
            self.codebase.problems[key] = Problem(file.name, error.line, str(error))
            return False

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
            if any(_TRAINING.search(one.source.raw) for one in program.facts.modules):
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


def _order(finding: Finding) -> tuple[str, int, int, int, str]:
    place = finding.place
    return place.path, place.cell or 0, place.line, place.column, finding.code
