"""JUnit's XML, for CI services that show tests: a suite per file, a failed test per finding.

Notes pass, with their text as output: a note never fails a run.
"""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import chain
from xml.etree import ElementTree

from ddp_lint.finding import Finding, Problem
from ddp_lint.report import Run
from ddp_lint.report._places import path_from_root, spoken

#: What XML 1.0 cannot hold, not even escaped.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(run: Run) -> str:
    """The document.  A run without findings is one test that passed."""
    suites: defaultdict[str, list[ElementTree.Element]] = defaultdict(list)
    for problem in run.problems:
        path = path_from_root(run, problem.path)
        suites[path].append(_problem(path, problem))
    for finding in run.findings:
        path = path_from_root(run, finding.place.path)
        suites[path].append(_finding(run, path, finding))
    if not suites:
        name = f"{run.files} {'file' if run.files == 1 else 'files'} without findings"
        suites["ddp-lint"].append(_case("ddp-lint", name))
    root = ElementTree.Element(
        "testsuites", {"name": "ddp-lint", **_counts([*chain.from_iterable(suites.values())])}
    )
    for path, cases in suites.items():
        suite = ElementTree.SubElement(root, "testsuite", {"name": _clean(path), **_counts(cases)})
        suite.extend(cases)
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ElementTree.tostring(root, "unicode")}\n'


def _counts(cases: list[ElementTree.Element]) -> dict[str, str]:
    return {
        "tests": str(len(cases)),
        "failures": str(sum(case.find("failure") is not None for case in cases)),
        "errors": str(sum(case.find("error") is not None for case in cases)),
    }


def _finding(run: Run, path: str, finding: Finding) -> ElementTree.Element:
    rule = run.rules.get(finding.code)
    place = spoken(finding.place)
    called = f"{finding.code} {rule.name}" if rule else finding.code
    case = _case(path, f"{called} at {place.removeprefix(finding.place.path + ':')}")
    case.set("file", _clean(path))
    case.set("line", str(finding.place.line))
    text = [f"{place}: {finding.level}: {finding.message}"]
    text += [f"  {spoken(one.place)}: {one.message}" for one in finding.related]
    if finding.level == "note":
        ElementTree.SubElement(case, "system-out").text = _clean("\n".join(text))
    else:
        attributes = {"type": finding.level, "message": _clean(finding.message)}
        ElementTree.SubElement(case, "failure", attributes).text = _clean("\n".join(text))
    return case


def _problem(path: str, problem: Problem) -> ElementTree.Element:
    case = _case(path, "can be linted")
    where = f"{path}:{problem.line}" if problem.line else path
    attributes = {"type": "unreadable", "message": _clean(problem.message)}
    ElementTree.SubElement(case, "error", attributes).text = _clean(f"{where}: {problem.message}")
    return case


def _case(path: str, name: str) -> ElementTree.Element:
    return ElementTree.Element("testcase", {"classname": _clean(path), "name": _clean(name)})


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)
