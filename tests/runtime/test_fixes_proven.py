"""A fix is proven as its rule is: what it makes of bad() passes the evidence of good().

The mended copies of the proofs run under torchrun, all in one go.  Where a fix does less than
that, it is said here, and the tests hold that it is so.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pytest

from ddp_lint.engine import analyse
from ddp_lint.fix import Fixed, fix
from ddp_lint.registry import all_rules
from ddp_lint.rule import Rule
from ddp_lint.sources import SourceFile
from runtime_checks import proofs
from tests import markers
from tests.runtime.launch import Run, run, torchrun


@dataclass(frozen=True)
class Change:
    """Text of a bad() that is replaced by other text that no fix makes, and why."""

    texts: dict[str, str]
    why: str

    def made_in(self, text: str) -> str:
        before, bad, good, after = _sides(text)
        for old, new in self.texts.items():
            assert bad.count(old) == 1, old
            bad = bad.replace(old, new)
        return before + bad + good + after


#: Rules that mend other forms of the defect than that of their proof, and why not this one.
NO_FIX = {
    "DDP206": "only a missing update() has a fix; the proof shows a plain step",
    "DDP403": "the file is read again in the same program, by a path that is no constant",
    "DDP507": "no device is chosen anywhere; the fix moves a choice that is made too late",
    "DDP508": "bad() ends by returning what it saw: there is no end to destroy the group at",
}
#: Proofs in the form that the fix is for: the defect is the same.
FORMS = {
    "DDP301": Change({"for _ in": "for epoch in"}, "a name to tell the sampler"),
    "DDP405": Change(
        {
            """\
        try:
            state = torch.load(path, map_location="cpu")  # DDP405
            model.module.load_state_dict(state)
        except FileNotFoundError:
            found = False
""": """\
        state = torch.load(path, map_location="cpu")  # DDP405
        model.module.load_state_dict(state)
"""
        },
        "the fix is for a load and a save in one block, not for a load in a try of its own",
    ),
}
#: What the fix leaves to its user (these are unsafe), or what the proof watches itself with.
BY_HAND = {
    "DDP401": Change(
        {"on_all_ranks=True": "on_all_ranks=False"},
        "the reader of the proof waits for all writers",
    ),
}
#: Checks of good() that the fix does not reach, by rule.
BEYOND = {
    "DDP101": {"device reads per step"},  # once behind the loop; good() reads every tenth step
    "DDP401": {"readers that failed"},  # good() also writes beside the file and renames
}

PROOFS = {proof.stem: proof for proof in proofs.discover() if proof.has_bad}
FIXABLE = {rule.code: rule for rule in all_rules().values() if rule.fixes and rule.stem in PROOFS}
MENDING = [rule for code, rule in FIXABLE.items() if code not in NO_FIX]


@dataclass(frozen=True)
class Mended:
    """What the fixes of one rule make of its proof."""

    fixed: Fixed
    before: str
    after: str


@cache
def mended(rule: Rule) -> Mended:
    """The proof of a rule, linted within the suite as users lint a project, and fixed."""
    suite = markers.proofs()
    key = f"runtime_checks/{rule.stem}.py"
    source = suite.files[key]
    before = source.whole_text
    if rule.code in FORMS:
        before = FORMS[rule.code].made_in(before)
        source = SourceFile(source.path, source.name, before)
    alone = replace(suite, files={**suite.files, key: source}, targets=frozenset({key}))
    done = fix(alone, lambda project: analyse(project, [rule]).findings, unsafe=True)
    (after,) = [file.after for file in done.files] or [before]
    return Mended(done, before, after)


def _sides(text: str) -> tuple[str, str, str, str]:
    """A proof in four parts: what stands before bad(), bad(), good(), and what follows."""
    functions = {node.name: node for node in ast.parse(text).body if hasattr(node, "name")}
    lines = text.splitlines(keepends=True)
    bad, good = functions["bad"], functions["good"]
    first = min([bad.lineno, *(one.lineno for one in getattr(bad, "decorator_list", ()))]) - 1
    between, end = good.lineno - 1, good.end_lineno
    parts = lines[:first], lines[first:between], lines[between:end], lines[end:]
    before, mine, others, after = map("".join, parts)
    return before, mine, others, after


def executed(texts: dict[str, str], folder: Path, *options: str) -> Run:
    """All these texts of proofs, by rule, each run as the suite runs it, on bad() alone."""
    folder.mkdir()
    files = []
    for code, text in texts.items():
        path = folder / f"{FIXABLE[code].stem}.py"
        path.write_text(text, encoding="utf-8")
        files.append(f"--proof-file={path}")
    return run(torchrun(), ["--expect-mended", *options, *files], folder / "out")


@pytest.fixture(scope="module")
def proven(tmp_path_factory: pytest.TempPathFactory) -> Run:
    texts = {rule.code: mended(rule).after for rule in MENDING}
    texts |= {code: change.made_in(texts[code]) for code, change in BY_HAND.items()}
    return executed(texts, tmp_path_factory.mktemp("proven") / "mended")


@pytest.fixture(scope="module")
def halfway(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """What must not pass: fixes that something is left to do for, and a bad() with none."""
    texts = {code: mended(FIXABLE[code]).after for code in BY_HAND}
    texts["DDP201"] = mended(FIXABLE["DDP201"]).before
    return executed(texts, tmp_path_factory.mktemp("halfway") / "left", "--timeout=20")


@pytest.mark.parametrize("rule", MENDING, ids=lambda rule: rule.code)
def test_the_fix_of_a_rule_mends_its_proof(rule: Rule, proven: Run) -> None:
    entry = proven.proofs[rule.stem]
    assert mended(rule).fixed.fixed
    assert not mended(rule).fixed.left
    if entry["status"] == "not_run":
        pytest.skip(f"{rule.stem}: {entry['reason']}")
    assert entry["status"] != "failed", entry["reason"]
    assert {check["of"] for check in entry["checks"]} == {"good"}
    broken = {check["name"] for check in entry["checks"] if not check["ok"]}
    assert broken == BEYOND.get(rule.code, set()), entry["reason"]
    assert len(broken) < len({check["name"] for check in entry["checks"]})


@pytest.mark.parametrize("code", sorted([*BY_HAND, "DDP201"]))
def test_without_what_is_left_to_do_it_does_not_pass(code: str, halfway: Run) -> None:
    entry = halfway.proofs[FIXABLE[code].stem]
    assert entry["status"] in ("failed", "disproved"), "take it off the list"


@pytest.mark.parametrize("rule", MENDING, ids=lambda rule: rule.code)
def test_the_fix_leaves_the_mended_side_and_the_evidence_alone(rule: Rule) -> None:
    _, before, *rest = _sides(mended(rule).before)
    _, after, *same = _sides(mended(rule).after)
    if rule.stem != "prefetcher_without_wait":  # its defect lies in a class beside bad()
        assert before != after
    assert rest == same


@pytest.mark.parametrize("code", sorted(NO_FIX))
def test_what_has_no_fix_in_its_proof_has_none(code: str) -> None:
    done = mended(FIXABLE[code]).fixed
    assert done.left, "nothing to mend: the proof or the rule has changed"
    assert not done.fixed, "it is mended now: take it off the list"
    assert all(finding.fix is None for finding in done.left)


@pytest.mark.parametrize("code", sorted(FORMS))
def test_a_proof_in_another_form_needs_it(code: str) -> None:
    rule, suite = FIXABLE[code], markers.proofs()
    alone = replace(suite, targets=frozenset({f"runtime_checks/{rule.stem}.py"}))
    found = analyse(alone, [rule]).findings
    assert found
    assert all(finding.fix is None for finding in found), "it is mended now: take it off the list"


def test_every_fixable_rule_is_looked_at() -> None:
    fixable = {rule.code for rule in all_rules().values() if rule.fixes}
    assert fixable == FIXABLE.keys()
    assert NO_FIX.keys() <= fixable
    assert BY_HAND.keys() | BEYOND.keys() | FORMS.keys() <= {rule.code for rule in MENDING}
