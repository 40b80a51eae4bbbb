"""GitHub's workflow commands: each finding is an annotation in the pull request.

GitHub shows ten annotations of each level per step; the log and SARIF have them all.
"""

from __future__ import annotations

from ddp_lint.finding import Finding, Level, Problem
from ddp_lint.report import Run
from ddp_lint.report._places import cell_and_line, lines_in_file, path_from_root, spoken

_COMMAND: dict[Level, str] = {"error": "error", "warning": "warning", "note": "notice"}


def render(run: Run) -> str:
    """One line per finding and per file that could not be linted."""
    lines = [_problem(run, problem) for problem in run.problems]
    lines += [_finding(run, finding) for finding in run.findings]
    return "".join(f"{line}\n" for line in lines)


def _finding(run: Run, finding: Finding) -> str:
    place = finding.place
    first, last = lines_in_file(run, place)
    where = {"file": path_from_root(run, place.path), "line": first, "endLine": last}
    if first == last and place.cell is None:  # columns are only allowed within one line
        where |= {"col": place.column + 1, "endColumn": place.end_column + 1}
    rule = run.rules.get(finding.code)
    where["title"] = f"{finding.code} {rule.name}" if rule else finding.code
    chain = [f"{spoken(one.place)}: {one.message}" for one in finding.related]
    text = "\n".join((cell_and_line(place) + finding.message, *chain))
    return _command(_COMMAND[finding.level], where, text)


def _problem(run: Run, problem: Problem) -> str:
    where: dict[str, object] = {"file": path_from_root(run, problem.path)}
    if problem.line > 0:
        where["line"] = problem.line
    return _command(
        "error", where | {"title": "ddp-lint could not lint this file"}, problem.message
    )


def _command(name: str, properties: dict[str, object], text: str) -> str:
    listed = ",".join(f"{key}={_property(str(value))}" for key, value in properties.items())
    return f"::{name} {listed}::{_data(text)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
