"""An engine for tests of what stands around the engine: it finds what a line asks it to find.

A line with ``find_DDP201`` has that finding at that word, a line with ``fix_DDP201`` one with a
fix that turns the word into ``fixed``, and ``related_DDP201`` one that points at line 1.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

import pytest

from ddp_lint.engine import Outcome
from ddp_lint.finding import Edit, Finding, Fix, Level, Problem, Related
from ddp_lint.rule import Rule
from ddp_lint.sources import Project, SourceFile, Unreadable

_WORD = re.compile(r"\b(find|fix|related)_(DDP\d{3})\b")


def _rule(code: str, name: str, level: Level, *, on: bool = True) -> Rule:
    page = f"The summary of {name}.\n\nWhy {name} matters.\n"
    return Rule(code, name, level, on, "", page, lambda program: iter(()))


RULES = {
    rule.code: rule
    for rule in (
        _rule("DDP101", "host-sync-in-step", "warning"),
        _rule("DDP105", "blocking-transfer", "note"),
        _rule("DDP201", "clip-before-unscale", "error"),
        _rule("DDP301", "sampler-without-set-epoch", "error"),
        _rule("DDP309", "starved-loader", "note", on=False),
    )
}


def analyse(project: Project, rules: Iterable[Rule], *, jobs: int = 1) -> Outcome:
    codes = {rule.code for rule in rules}
    found: list[Finding] = []
    problems: list[Problem] = []
    for key in sorted(project.targets):
        source = project.files[key]
        try:
            ast.parse(source.text)
            found += (one for one in _findings(source) if one.code in codes)
        except Unreadable as error:
            problems.append(Problem(source.name, error.line, str(error)))
        except SyntaxError as error:
            problems.append(Problem(source.name, error.lineno or 0, f"{error.msg}"))
    return Outcome(tuple(sorted(found, key=lambda one: one.sort_key)), tuple(problems))


def _findings(source: SourceFile) -> Iterator[Finding]:
    for number, line in enumerate(source.lines, 1):
        for word in _WORD.finditer(line):
            kind, code = word.groups()
            before, whole = (len(line[:at].encode()) for at in word.span())
            place = source.place(number, before, number, whole)
            top = source.place(1, 0, 1, 1)
            related = (Related(top, "it starts here"),) if kind == "related" else ()
            fix = Fix("say fixed", (Edit(place, "fixed"),), safe=True) if kind == "fix" else None
            message = f"`{word[0]}` goes wrong on every rank"
            yield Finding(code, RULES[code].level, place, message, related, fix)


def use(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put this engine and its rules in place of the real ones, in this process."""
    import ddp_lint.api
    import ddp_lint.registry

    monkeypatch.setattr(ddp_lint.api, "analyse", analyse)
    monkeypatch.setattr(ddp_lint.api, "all_rules", lambda: RULES)
    monkeypatch.setattr(ddp_lint.registry, "all_rules", lambda: RULES)
