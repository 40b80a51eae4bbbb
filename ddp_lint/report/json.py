"""For programs: one JSON object, described in docs/json.md."""

from __future__ import annotations

import json
from typing import Any

from ddp_lint.finding import LEVELS, Edit, Finding, Place
from ddp_lint.report import Run

#: Raised when a field changes its meaning or goes away; new fields do not raise it.
VERSION = 1


def render(run: Run) -> str:
    document = {
        "version": VERSION,
        "findings": [_finding(run, finding) for finding in run.findings],
        "problems": [
            {"path": problem.path, "line": problem.line or None, "message": problem.message}
            for problem in run.problems
        ],
        "summary": {
            "files": run.files,
            "levels": {level: run.by_level.get(level, 0) for level in LEVELS},
            "suppressed": run.suppressed,
            "codes": run.by_code,
        },
    }
    return json.dumps(document, indent=2) + "\n"


def _finding(run: Run, finding: Finding) -> dict[str, Any]:
    rule = run.rules.get(finding.code)
    entry = {
        "code": finding.code,
        "name": rule.name if rule else None,
        "level": finding.level,
        **_place(finding.place),
        "message": finding.message,
        "related": [{**_place(one.place), "message": one.message} for one in finding.related],
    }
    if finding.fix is not None:
        entry["fix"] = {
            "title": finding.fix.title,
            "safe": finding.fix.safe,
            "edits": [_edit(edit) for edit in finding.fix.edits],
        }
    return entry


def _edit(edit: Edit) -> dict[str, Any]:
    return {**_place(edit.place), "text": edit.text}


def _place(place: Place) -> dict[str, Any]:
    """Lines and columns from 1; the end column is the first one after the place."""
    cell = {} if place.cell is None else {"cell": place.cell}
    return {
        "path": place.path,
        **cell,
        "line": place.line,
        "column": place.column + 1,
        "end_line": place.end_line,
        "end_column": place.end_column + 1,
    }
