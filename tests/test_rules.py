"""Every rule's page, cases and proof say the same thing as its check, and so do its fixes.

Nothing here is about one rule: a new rule is tested by having a page and cases.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Sequence

import pytest

from ddp_lint.finding import Finding
from ddp_lint.fix import fix
from ddp_lint.registry import all_rules
from ddp_lint.rule import Example, Rule
from ddp_lint.sources import Project, SourceFile
from tests import markers

RULES = list(all_rules().values())
EXAMPLES = [(rule, example) for rule in RULES for example in rule.examples]
BAD = [(rule, example) for rule, example in EXAMPLES if example.verdict == "bad"]
CASES = list(markers.cases())
#: Codes of the catalogue that cases and proofs mark already, though the rule is still to come.
AWAITED: set[str] = set()


def _name(value: Rule | Example) -> str:
    return value.name if isinstance(value, Rule) else value.verdict


@pytest.mark.parametrize(("rule", "example"), EXAMPLES, ids=_name)
def test_example(rule: Rule, example: Example) -> None:
    project = markers.project_of_text(example.code)
    assert markers.found(project) == markers.marked(project)
    speaks = any(mark.code == rule.code for mark in markers.marked(project))
    assert speaks == (example.verdict == "bad")


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    project = markers.project_of(markers.cases()[name])
    assert markers.found(project) == markers.marked(project)


@pytest.fixture(scope="module")
def found_in_proofs() -> list[markers.Marked]:
    return markers.found(markers.proofs())


@pytest.mark.parametrize("path", sorted(markers.proofs().files))
def test_proof(path: str, found_in_proofs: list[markers.Marked]) -> None:
    expected = [mark for mark in markers.marked(markers.proofs()) if mark.path == path]
    assert [mark for mark in found_in_proofs if mark.path == path] == expected


def test_awaited_rules() -> None:
    assert markers.codes_without_rule() == AWAITED


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_has_a_case_that_speaks_and_one_that_is_silent(rule: Rule) -> None:
    names = [name for name in CASES if re.match(rf"{rule.stem}(/|\.|$)", name)]
    projects = [markers.project_of(markers.cases()[name]) for name in names]
    codes = {mark.code for project in projects for mark in markers.marked(project)}
    assert rule.code in codes


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_page(rule: Rule) -> None:
    assert re.fullmatch(r"DDP\d{3}", rule.code)
    assert rule.summary.endswith(".")
    assert not rule.summary.endswith("..")
    assert len(rule.summary) <= 110
    assert "\n\n" in rule.page.partition("\nBad")[0], "the page does not say why"
    assert {example.verdict for example in rule.examples} == {"bad", "good"}
    fences = len(re.findall(r"^```python$", rule.page, re.M))
    assert fences == len(rule.examples), "a fence that is no Bad and no Good example"
    for example in rule.examples:
        compile(example.code, rule.name, "exec")


@pytest.fixture(scope="module")
def kinds_of_fixes() -> dict[str, set[bool]]:
    """By code, whether the fixes in examples and cases are safe."""
    projects = [markers.project_of_text(example.code) for _, example in EXAMPLES]
    projects += [markers.project_of(path) for path in markers.cases().values()]
    kinds: dict[str, set[bool]] = {}
    for finding in (finding for project in projects for finding in markers.findings(project)):
        if finding.fix is not None:
            kinds.setdefault(finding.code, set()).add(finding.fix.safe)
    return kinds


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_fixes_are_as_declared(rule: Rule, kinds_of_fixes: dict[str, set[bool]]) -> None:
    kinds = kinds_of_fixes.get(rule.code, set())
    if rule.fixes == "unsafe":
        assert False in kinds
    else:
        assert kinds == ({True} if rule.fixes else set())


@pytest.mark.parametrize(("rule", "example"), BAD, ids=_name)
def test_fix_of_example(rule: Rule, example: Example) -> None:
    project = _without_markers(markers.project_of_text(example.code))
    fixed = _check_fixes(project)
    wanted = [one.code for one in rule.examples if "--fix" in one.title]
    if fixed and wanted:
        assert fixed["example.py"] == wanted[0]


@pytest.mark.parametrize("name", CASES)
def test_fix_of_case(name: str) -> None:
    _check_fixes(_without_markers(markers.project_of(markers.cases()[name])))


def _lint(project: Project) -> Sequence[Finding]:
    return markers.findings(project)


def _without_markers(project: Project) -> Project:
    """A fix may take a line away that has no comment but the marker."""
    files = {
        key: source
        if source.is_notebook
        else SourceFile(
            source.path, source.name, re.sub(r"  # *DDP[\d, DP]+$", "", source.text, flags=re.M)
        )
        for key, source in project.files.items()
    }
    return Project(project.root, files, project.targets)


def _check_fixes(project: Project) -> dict[str, str]:
    """Fix everything, hold the promises, and give the files that changed."""
    before = [finding for finding in _lint(project) if finding.fix is not None]
    fixed = fix(project, _lint, unsafe=True)
    assert not fixed.withdrawn
    assert len(fixed.fixed) >= len(before)
    assert not [finding for finding in fixed.left if finding.fix is not None]
    files = dict(project.files)
    for file in fixed.files:
        assert _comments(file.before) <= _comments(file.after)
        (key,) = (key for key, source in files.items() if source.name == file.name)
        files[key] = SourceFile(file.source.path, file.name, file.after)
    again = fix(Project(project.root, files, project.targets), _lint, unsafe=True)
    assert not again.files
    return {file.name: file.after for file in fixed.files}


def _comments(text: str) -> set[str]:
    tokens = tokenize.generate_tokens(io.StringIO(text, newline="").readline)
    return {token.string for token in tokens if token.type == tokenize.COMMENT}
