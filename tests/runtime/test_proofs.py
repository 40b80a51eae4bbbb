"""Rules and proofs belong together: one stem, one code, and the flagged lines are those that fail.

That the proofs hold when they run is in test_suite; that all of them together have no other
finding is in tests/test_rules.  Here each one stands alone, as someone reads it.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from ddp_lint import lint
from ddp_lint.registry import all_rules
from runtime_checks import proofs
from runtime_checks.proofs import Proof
from tests import markers

RULES = {rule.stem: rule for rule in all_rules().values()}
PROOFS = {proof.stem: proof for proof in proofs.discover() if proof.has_bad}
#: Proofs whose rule is not written yet, or does not find what the proof marks.  A name leaves
#: this list as soon as it can.
WAITING: set[str] = set()


@cache
def marked(stem: str) -> set[tuple[int, str]]:
    """The lines that the proof marks, also for rules that are not written yet."""
    lines = proofs.markers(PROOFS[stem].path.read_text(encoding="utf-8"))
    return {(line, code) for line, codes in lines.items() for code in codes}


@cache
def found(stem: str) -> set[tuple[int, str]]:
    """What all rules find in the proof when only that file is looked at."""
    suite = markers.proofs()
    (name,) = [key for key in suite.files if Path(key).stem == stem]
    alone = replace(suite, targets=frozenset({name}))
    return {(finding.line, finding.code) for finding in markers.found(alone)}


@pytest.mark.parametrize("stem", sorted(PROOFS.keys() - WAITING))
def test_the_flagged_lines_are_the_marked_ones(stem: str) -> None:
    assert found(stem) == marked(stem)
    assert RULES[stem].code in {code for _, code in marked(stem)}


@pytest.mark.parametrize("stem", sorted(WAITING))
def test_what_waits_has_to_wait(stem: str) -> None:
    assert stem in PROOFS
    assert stem not in RULES or found(stem) != marked(stem), "take it off the list"


@pytest.mark.parametrize("stem", sorted(RULES))
def test_every_rule_has_a_proof(stem: str) -> None:
    assert stem in PROOFS


@pytest.mark.parametrize("proof", PROOFS.values(), ids=lambda proof: proof.stem)
def test_only_what_is_bad_is_marked(proof: Proof) -> None:
    text = proof.path.read_text(encoding="utf-8")
    functions = {
        node.name: range(node.lineno, (node.end_lineno or 0) + 1)
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef)
    }
    lines = proofs.markers(text)
    assert lines
    for name in "good", "evidence":
        assert not lines.keys() & set(functions[name]), name


def test_a_user_sees_the_same() -> None:
    """Through the Python API, asked for the files and for all rules."""
    stems = sorted(PROOFS.keys() - WAITING)
    codes = list(all_rules())  # by name, for a prefix leaves out what is off
    findings = lint([PROOFS[stem].path for stem in stems], select=codes, isolated=True)
    seen = {(Path(one.place.path).stem, one.place.line, one.code) for one in findings}
    assert seen == {(stem, line, code) for stem in stems for line, code in marked(stem)}
