"""Whole programs that show one defect each as people copy it, and their mended twins.

A folder below ``tests/projects`` holds ``bad`` and ``good``, each a file or a folder of files;
for frameworks, ``bad`` is what the framework leaves to its user and ``good`` what it does itself.
Every one is linted as a project of its own.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ddp_lint.registry import all_rules
from tests import markers

PROJECTS = markers.ROOT / "tests" / "projects"
#: Codes that projects mark already, though the rule is still to come.
AWAITED: set[str] = set()
#: What the linter does not see yet: (project, file, code).  A test fails once it does.
UNSEEN = {
    ("metric_of_one_rank/bad", "evaluation.py", "DDP512"),
    ("titan_recipe/bad", "pretrain/data.py", "DDP304"),
}
MARKER = re.compile(r"#\s*(DDP\d{3}[DP\d, ]*)$", re.M)
CODE = re.compile(r"DDP\d{3}")


def entries() -> list[str]:
    """``name/bad``, ``name/good.py`` and so on, relative to the folder of projects."""
    return sorted(
        path.relative_to(PROJECTS).as_posix()
        for path in PROJECTS.glob("*/*")
        if path.stem in ("bad", "good")
    )


def marks(name: str) -> set[str]:
    """All codes that the files of an entry mark, those without a rule too."""
    files = markers.project_of(PROJECTS / name).files.values()
    found = [marker for file in files for marker in MARKER.findall(file.text)]
    return set(CODE.findall(" ".join(found)))


@pytest.mark.parametrize("name", entries())
def test_project(name: str) -> None:
    project = markers.project_of(PROJECTS / name)
    expected = [
        mark for mark in markers.marked(project) if (name, mark.path, mark.code) not in UNSEEN
    ]
    assert markers.found(project) == expected


@pytest.mark.parametrize("name", entries())
def test_only_bad_ones_are_marked(name: str) -> None:
    assert bool(marks(name)) == name.partition("/")[2].startswith("bad")


@pytest.mark.parametrize("folder", sorted(path.name for path in PROJECTS.iterdir()))
def test_twins(folder: str) -> None:
    inside = [Path(name).stem for name in entries() if name.startswith(f"{folder}/")]
    assert sorted(inside) == ["bad", "good"]


@pytest.mark.parametrize("name", entries())
def test_is_python(name: str) -> None:
    for key, source in markers.project_of(PROJECTS / name).files.items():
        compile(source.text, f"{name}/{key}", "exec")


def test_awaited_rules() -> None:
    codes = set().union(*map(marks, entries()))
    assert codes - set(all_rules()) == AWAITED
