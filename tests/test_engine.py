"""The engine: the same findings in every run, and no fault of ours hides the others."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import weakref
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ddp_lint import engine
from ddp_lint.engine import analyse
from ddp_lint.finding import Draft
from ddp_lint.model import Program
from ddp_lint.model.codebase import CodeBase
from ddp_lint.model.modules import Module
from ddp_lint.registry import all_rules
from ddp_lint.sources import Project, SourceFile

CASES = Path(__file__).parent / "cases"


def cases() -> Project:
    files = {
        path.name: SourceFile(path, path.name)
        for path in sorted(CASES.glob("*.py"))
        if path.stem in _STEMS
    }
    return Project(CASES, files, frozenset(files))


def test_processes_share_programs_and_find_the_same() -> None:
    project = cases()
    rules = list(all_rules().values())
    alone = analyse(project, rules)
    assert alone.findings
    assert analyse(project, rules, jobs=2) == alone


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_rule_that_breaks_is_one_line_and_the_others_go_on(jobs: int) -> None:
    def broken(program: Program) -> Iterator[Draft]:
        raise ValueError("two\nlines")
        yield

    rules = all_rules()
    some = [replace(rules["DDP101"], check=broken), rules["DDP201"]]
    outcome = analyse(cases(), some, jobs=jobs)
    assert {finding.code for finding in outcome.findings} == {"DDP201"}
    said = [problem for problem in outcome.problems if problem.path == "host_sync_in_step.py"]
    assert len(said) == 1
    assert said[0].message.startswith("ddp-lint could not decide DDP101 in the program that")
    assert "(ValueError at test_engine.py:" in said[0].message
    assert "two lines); please report it" in said[0].message


def test_a_program_that_breaks_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(wiring: object, modules: object) -> Program:
        raise RecursionError("too deep")

    monkeypatch.setattr(engine, "Program", broken)
    outcome = analyse(cases(), all_rules().values())
    assert not outcome.findings
    assert len(outcome.problems) == len(_STEMS)
    assert "could not decide the program that starts here" in outcome.problems[0].message


def test_nothing_of_a_run_stays_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    trees: list[weakref.ref[CodeBase]] = []

    class Watched(CodeBase):
        def __init__(self, project: Project) -> None:
            super().__init__(project)
            trees.append(weakref.ref(self))

        def module(self, key: str) -> Module | None:
            found = super().module(key)
            if found is not None:
                modules.append(weakref.ref(found))
            return found

    modules: list[weakref.ref[Module]] = []
    monkeypatch.setattr(engine, "CodeBase", Watched)
    analyse(cases(), all_rules().values())
    gc.collect()
    assert trees
    assert modules
    assert [ref() for ref in trees + modules if ref() is not None] == []


def test_the_same_in_every_run() -> None:
    """Also where hashes and addresses differ: of two reasons the same one is told."""
    root = CASES.parent.parent
    command = [sys.executable, "-m", "ddp_lint", "check", "--format", "json", "--isolated"]
    told = set()
    for seed in ("1", "2", "3"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(root)}
        names = [f"{stem}.py" for stem in sorted(_STEMS)]
        ran = subprocess.run([*command, *names], cwd=CASES, env=environment, capture_output=True)
        assert ran.returncode == 1, ran.stderr
        told.add(ran.stdout)
    assert len(told) == 1


_STEMS = frozenset(
    {"host_sync_in_step", "branch_on_device_value", "unguarded_save", "clip_before_unscale",
     "sampler_without_set_epoch", "forward_around_ddp", "collective_in_rank_guard",
     "data_parallel", "synchronize_in_step", "zero_grad_missing", "stream_per_epoch"}
)  # fmt: skip
