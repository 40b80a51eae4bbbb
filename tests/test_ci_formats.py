"""GitHub's, GitLab's and JUnit's formats: what they may hold, and that text cannot break out."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from ddp_lint.report import Run, github, gitlab, junit
from tests.sample_run import run


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    for name in ("GITHUB_WORKSPACE", "CI_PROJECT_DIR"):
        monkeypatch.delenv(name, raising=False)
    return run(tmp_path)


@pytest.fixture
def clean(made: Run) -> Run:
    return Run((), (), 3, made.rules, made.cwd)


def test_github_gets_one_line_per_finding_whatever_its_text_holds(made: Run) -> None:
    lines = github.render(made).splitlines()
    assert len(lines) == 5
    assert [line.split(" ")[0] for line in lines] == [
        *["::error"] * 3,
        "::notice",
        "::warning",
    ]
    head, _, text = lines[2][2:].partition("::")
    command, _, properties = head.partition(" ")
    assert command == "error"
    assert properties.split(",") == [
        "file=a b/train.py",
        "line=5",
        "endLine=5",
        "col=5",
        "endColumn=60",
        "title=DDP201 clip-before-unscale",
    ]
    assert text.startswith("100%25 of `</script>` is%0Aclipped: a,b::c%0Aa b/train.py:3: the loop")


def test_github_gets_paths_from_the_checkout(made: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_WORKSPACE", str(made.cwd.parent))
    assert f"file={made.cwd.name}/a b/train.py," in github.render(made)


def test_github_escapes_what_would_end_a_property(made: Run) -> None:
    assert github._property("a:b,c%\n") == "a%3Ab%2Cc%25%0A"


def test_gitlab_gets_what_it_asks_for(made: Run) -> None:
    issues = json.loads(gitlab.render(made))
    assert len({issue["fingerprint"] for issue in issues}) == len(issues) == 5
    for issue in issues:
        assert issue["severity"] in ("info", "minor", "major", "critical", "blocker")
        assert issue["description"]
        assert issue["check_name"]
        assert not issue["location"]["path"].startswith(("/", "./"))
        assert issue["location"]["lines"]["begin"] >= 1
    assert issues[0]["location"] == {"path": "a b/train.py", "lines": {"begin": 5, "end": 5}}
    assert issues[2]["description"] == "DDP201: cell 3, line 2: in a cell"
    assert issues[3]["description"] == "could not be linted: is Python 2: print 'x'"


def test_gitlab_gets_an_empty_list_where_nothing_was_found(clean: Run) -> None:
    assert json.loads(gitlab.render(clean)) == []


def test_junit_fails_a_test_per_finding_and_none_for_a_note(made: Run) -> None:
    root = ElementTree.fromstring(junit.render(made))
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("5", "2", "2")
    suites = {suite.get("name"): suite for suite in root}
    assert set(suites) == {"a b/train.py", "nb.ipynb", "old.py", "bin.py"}
    failure = suites["a b/train.py"].find("testcase/failure")
    assert failure is not None
    assert "the loop" in (failure.text or "")
    note = suites["a b/train.py"].find("testcase/system-out")
    assert note is not None
    assert "worth a look \N{REPLACEMENT CHARACTER} <i>" in (note.text or "")
    names = [case.get("name") for case in suites["nb.ipynb"]]
    assert names == ["DDP201 clip-before-unscale at cell 3:2"]


def test_junit_has_a_test_that_passed_where_nothing_was_found(clean: Run) -> None:
    root = ElementTree.fromstring(junit.render(clean))
    assert (root.get("tests"), root.get("failures")) == ("1", "0")
