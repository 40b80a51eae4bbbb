"""``# DDP101`` at the end of a line says: this line, and no other, has that finding.

Cases are files or folders below ``tests/cases``, named like the rule that they are about; a
folder is one project, or holds one project a folder.  Markers speak of *all* rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

from ddp_lint.engine import analyse
from ddp_lint.finding import Finding
from ddp_lint.registry import all_rules
from ddp_lint.sources import Project, SourceFile

ROOT = Path(__file__).parent.parent
CASES = ROOT / "tests" / "cases"
_MARKER = re.compile(r"#\s*(DDP\d{3}(?:\s*,\s*DDP\d{3})*)\s*$")


class Marked(NamedTuple):
    """One expectation, or one finding as it is compared with it."""

    path: str
    line: int
    code: str


def project_of(path: Path) -> Project:
    """The file or folder ``path`` as a project of its own, everything in it to be linted."""
    if path.is_file():
        found = {path.name: path}
        root = path.parent
    else:
        found = {
            file.relative_to(path).as_posix(): file
            for file in sorted(path.rglob("*"))
            if file.suffix in (".py", ".ipynb")
        }
        root = path
    files = {key: SourceFile(file, key) for key, file in found.items()}
    return Project(root, files, frozenset(files))


def project_of_text(text: str, name: str = "example.py") -> Project:
    """A text as a project of one file."""
    source = SourceFile(Path(name), name, text)
    return Project(Path.cwd(), {name: source}, frozenset({name}))


def findings(project: Project) -> tuple[Finding, ...]:
    """What all rules say, those that are off by default too."""
    outcome = analyse(project, all_rules().values())
    assert not outcome.problems, outcome.problems
    return outcome.findings


def found(project: Project) -> list[Marked]:
    """Findings by the line of the source as one text, also in a notebook."""
    sources = {source.name: source for source in project.files.values()}

    def line(finding: Finding) -> int:
        book, cell = sources[finding.place.path].notebook, finding.place.cell
        return finding.place.line + (book.start_of(cell) if book and cell is not None else 0)

    return sorted(
        Marked(finding.place.path, line(finding), finding.code) for finding in findings(project)
    )


def marked(project: Project) -> list[Marked]:
    """The markers of the project, without those of rules that are not written yet."""
    return sorted(mark for mark in _marks(project.files.values()) if mark.code in all_rules())


def _marks(sources: Iterable[SourceFile]) -> list[Marked]:
    return [
        Marked(source.name, number, code.strip())
        for source in sources
        for number, line in enumerate(source.lines, 1)
        if (marker := _MARKER.search(line))
        for code in marker[1].split(",")
    ]


@cache
def cases() -> dict[str, Path]:
    """Every case by its path below ``tests/cases``."""
    paths: list[Path] = []
    for path in sorted(CASES.iterdir()):
        if path.is_dir() and path.name != "__pycache__":
            entries = sorted(path.iterdir())
            paths += [path] if any(entry.is_file() for entry in entries) else entries
        elif path.suffix in (".py", ".ipynb"):
            paths.append(path)
    return {path.relative_to(CASES).as_posix(): path for path in paths}


def proofs() -> Project:
    """The proofs of all rules and what they stand on, as the one program that they are."""
    inside = project_of(ROOT / "runtime_checks")
    names = {f"runtime_checks/{key}": source.path for key, source in inside.files.items()}
    files = {name: SourceFile(path, name) for name, path in names.items()}
    return Project(ROOT, files, frozenset(files))


def codes_without_rule() -> set[str]:
    """Codes that cases and proofs mark though no rule has them."""
    projects = [*map(project_of, cases().values()), proofs()]
    marks = (mark for project in projects for mark in _marks(project.files.values()))
    return {mark.code for mark in marks} - set(all_rules())
