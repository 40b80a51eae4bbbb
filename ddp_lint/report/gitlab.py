"""GitLab's code quality report, for merge requests."""

from __future__ import annotations

import json
from typing import Any

from ddp_lint.finding import Finding, Level
from ddp_lint.fingerprint import fingerprints
from ddp_lint.report import Run
from ddp_lint.report._places import cell_and_line, lines_in_file, path_from_root

_SEVERITY: dict[Level, str] = {"error": "critical", "warning": "major", "note": "info"}


def render(run: Run) -> str:
    """A list of issues as JSON.  The fingerprints stay when lines move."""
    names = fingerprints(run.findings, run.source_line)
    issues = [
        _issue(
            code=finding.code,
            text=f"{finding.code}: {cell_and_line(finding.place)}{finding.message}",
            severity=_SEVERITY[finding.level],
            path=path_from_root(run, finding.place.path),
            lines=_lines(run, finding),
            name=name,
        )
        for finding, name in zip(run.findings, names, strict=True)
    ]
    issues += [
        _issue(
            code="unreadable",
            text=f"could not be linted: {problem.message}",
            severity="major",
            path=path_from_root(run, problem.path),
            lines={"begin": max(problem.line, 1)},
            name=f"unreadable {problem.path}",
        )
        for problem in run.problems
    ]
    return json.dumps(issues, indent=2, ensure_ascii=False) + "\n"


def _lines(run: Run, finding: Finding) -> dict[str, int]:
    first, last = lines_in_file(run, finding.place)
    return {"begin": first, "end": last}


def _issue(
    *, code: str, text: str, severity: str, path: str, lines: dict[str, int], name: str
) -> dict[str, Any]:
    return {
        "type": "issue",
        "check_name": code,
        "description": text,
        "severity": severity,
        "fingerprint": name,
        "location": {"path": path, "lines": lines},
    }
