"""SARIF 2.1.0, for code scanning services and editors.

Columns count characters (``columnKind`` says so).  A finding's related places are both its related
locations and, with the finding itself at the end, a code flow.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ddp_lint import __version__
from ddp_lint.edits import Lines
from ddp_lint.finding import Edit, Finding, Level, Place, Problem
from ddp_lint.fingerprint import fingerprints
from ddp_lint.notebook import rewrite
from ddp_lint.report import Run
from ddp_lint.report._places import cell_and_line, lines_in_file, path_from_root, root_of
from ddp_lint.rule import Rule

_Json = dict[str, Any]

_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_ROOT = "%SRCROOT%"
_SEVERITY: dict[Level, str] = {"error": "error", "warning": "warning", "note": "recommendation"}


def render(run: Run) -> str:
    """The log of one run, as JSON."""
    indices = {code: index for index, code in enumerate(run.rules)}
    names = fingerprints(run.findings, run.source_line)
    log = {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": _driver(run.rules.values())},
                "columnKind": "unicodeCodePoints",
                "originalUriBaseIds": {_ROOT: {"uri": _folder_uri(root_of(run))}},
                "invocations": [_invocation(run)],
                "results": [
                    _result(run, finding, indices.get(finding.code), name)
                    for finding, name in zip(run.findings, names, strict=True)
                ],
            }
        ],
    }
    return json.dumps(log, indent=2, ensure_ascii=False) + "\n"


def _driver(rules: Iterable[Rule]) -> _Json:
    return {
        "name": "ddp-lint",
        "version": __version__,
        "rules": [_rule(rule) for rule in rules],
    }


def _rule(rule: Rule) -> _Json:
    return {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": _opening(rule.page)},
        "help": {"text": rule.page, "markdown": rule.page},
        "defaultConfiguration": {"enabled": rule.on, "level": rule.level},
        "properties": {
            "tags": ["pytorch", "distributed"],
            "problem.severity": _SEVERITY[rule.level],
        },
    }


def _opening(page: str) -> str:
    """The page down to its first example."""
    paragraphs = page.split("\n\n")
    examples = (at for at, text in enumerate(paragraphs) if text.startswith(("Bad", "```")))
    return "\n\n".join(paragraphs[: next(examples, len(paragraphs))]) or page


def _invocation(run: Run) -> _Json:
    notes = [_notification(run, problem) for problem in run.problems]
    return {"executionSuccessful": True, "toolExecutionNotifications": notes}


def _notification(run: Run, problem: Problem) -> _Json:
    where: _Json = {"artifactLocation": _artifact(run, problem.path)}
    if problem.line > 0:
        where["region"] = {"startLine": problem.line}
    return {
        "level": "error",
        "message": {"text": problem.message},
        "locations": [{"physicalLocation": where}],
    }


def _result(run: Run, finding: Finding, index: int | None, name: str) -> _Json:
    here = _location(run, finding.place)
    result: _Json = {
        "ruleId": finding.code,
        "level": finding.level,
        "message": {"text": cell_and_line(finding.place) + finding.message},
        "locations": [here],
        "partialFingerprints": {"ddpLint/v1": name},
    }
    if index is not None:
        result["ruleIndex"] = index
    if finding.related:
        related = [
            {
                **_location(run, one.place),
                "message": {"text": cell_and_line(one.place) + one.message},
            }
            for one in finding.related
        ]
        last = {**here, "message": {"text": finding.message}}
        steps = [{"location": step} for step in (*related, last)]
        result["relatedLocations"] = [{"id": at, **one} for at, one in enumerate(related)]
        result["codeFlows"] = [{"threadFlows": [{"locations": steps}]}]
    if fix := _fix(run, finding):
        result["fixes"] = [fix]
    return result


def _location(run: Run, place: Place) -> _Json:
    physical = {"artifactLocation": _artifact(run, place.path), **_regions(run, place)}
    location: _Json = {"physicalLocation": physical}
    if place.cell is not None:
        name = f"cell {place.cell}"
        location["logicalLocations"] = [{"name": name, "kind": "cell"}]
    return location


def _regions(run: Run, place: Place) -> _Json:
    """The region of a place and, where that is part of one line, the line around it."""
    first, last = lines_in_file(run, place)
    region: _Json = {"startLine": first, "endLine": last}
    if place.cell is not None:
        return {"region": region}
    region |= {"startColumn": place.column + 1, "endColumn": place.end_column + 1}
    line = run.source_line(place)
    if first != last or not line:
        return {"region": region}
    region["snippet"] = {"text": line[place.column : place.end_column]}
    return {"region": region, "contextRegion": {"startLine": first, "snippet": {"text": line}}}


def _artifact(run: Run, path: str) -> _Json:
    from_root = path_from_root(run, path)
    if Path(from_root).is_absolute():
        return {"uri": Path(from_root).as_uri()}
    return {"uri": quote(from_root), "uriBaseId": _ROOT}


def _folder_uri(folder: Path) -> str:
    return folder.absolute().as_uri().rstrip("/") + "/"


def _fix(run: Run, finding: Finding) -> _Json | None:
    if finding.fix is None:
        return None
    by_path: dict[str, list[Edit]] = {}
    for edit in sorted(finding.fix.edits):
        by_path.setdefault(edit.place.path, []).append(edit)
    changes = [
        {
            "artifactLocation": _artifact(run, path),
            "replacements": _in_notebook(run, edits)
            if edits[0].place.cell is not None
            else [_replacement(edit.place, edit.text) for edit in edits],
        }
        for path, edits in by_path.items()
    ]
    kind = "" if finding.fix.safe else " (read it before you take it)"
    return {"description": {"text": finding.fix.title + kind}, "artifactChanges": changes}


def _replacement(place: Place, text: str) -> _Json:
    return {
        "deletedRegion": {
            "startLine": place.line,
            "startColumn": place.column + 1,
            "endLine": place.end_line,
            "endColumn": place.end_column + 1,
        },
        "insertedContent": {"text": text},
    }


def _in_notebook(run: Run, edits: list[Edit]) -> list[_Json]:
    """The edits of one notebook as one replacement in its JSON."""
    path = edits[0].place.path
    source = run.sources[path]
    assert source.notebook is not None
    cells: dict[int, str] = {}
    for edit in reversed(edits):
        cell = edit.place.cell
        assert cell is not None
        text = cells.get(cell, source.notebook.written_cell(cell))
        start, end = Lines(text).span(edit.place)
        cells[cell] = text[:start] + edit.text + text[end:]
    old = source.whole_text
    new = rewrite(old, cells)
    head = _common_start(old, new)
    tail = _common_start(old[head:][::-1], new[head:][::-1])
    lines = Lines(old)
    place = Place(path, *lines.position(head), *lines.position(len(old) - tail))
    return [_replacement(place, new[head : len(new) - tail])]


def _common_start(one: str, other: str) -> int:
    return next(
        (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
        min(len(one), len(other)),
    )
