"""What is parsed decides how long linting takes, and never what it says.

Over all programs of ours: the findings are those without the gate, and each file has the same
ones when nobody asks about another.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from ddp_lint.engine import analyse
from ddp_lint.finding import Finding
from ddp_lint.registry import all_rules
from ddp_lint.sources import Project, SourceFile
from tests import markers

PROJECTS = markers.ROOT / "tests" / "projects"
FOLDERS = {
    **{f"cases/{name}": path for name, path in markers.cases().items()},
    **{
        path.relative_to(markers.ROOT / "tests").as_posix(): path
        for path in sorted(PROJECTS.glob("*/*"))
        if path.stem in ("bad", "good")
    },
    **{f"examples/{name}": markers.ROOT / "examples" / name for name in ("broken", "mended")},
}


def project_of(name: str) -> Project:
    return markers.proofs() if name == "proofs" else markers.project_of(FOLDERS[name])


def findings(project: Project, *, gate: bool = True) -> Sequence[Finding]:
    outcome = analyse(project, all_rules().values(), gate=gate)
    assert not outcome.problems
    return outcome.findings


@cache
def findings_of(name: str) -> Sequence[Finding]:
    return findings(project_of(name))


def of_files() -> list[tuple[str, str]]:
    """Every file of the projects that have several."""
    return [
        (name, key)
        for name in [*FOLDERS, "proofs"]
        if len(keys := sorted(project_of(name).files)) > 1
        for key in keys
    ]


@pytest.mark.parametrize("name", [*FOLDERS, "proofs"])
def test_the_gate_changes_nothing(name: str) -> None:
    assert findings(project_of(name), gate=False) == findings_of(name)


@pytest.mark.parametrize(("name", "key"), of_files())
def test_a_file_alone_has_the_same_findings(name: str, key: str) -> None:
    project = project_of(name)
    path = project.files[key].name
    alone = findings(replace(project, targets=frozenset({key})))
    assert list(alone) == [one for one in findings_of(name) if one.place.path == path]


SAVING = """
import torch

def save(model):
    torch.save(model.state_dict(), "last.pt")
"""
STARTS = "dist.init_process_group('nccl'); main(torch.nn.Linear(1, 1))"
HEAD = "import torch\nimport torch.distributed as dist\n"


def of_texts(**texts: str) -> Project:
    """Files by their names, ``__`` for a dot."""
    names = {name.replace("__", "."): text for name, text in texts.items()}
    files = {key: SourceFile(Path(key), key, text) for key, text in names.items()}
    return Project(Path.cwd(), files, frozenset({"saving.py"}))


def notebook(text: str) -> str:
    cell = {"cell_type": "code", "source": text.splitlines(keepends=True), "metadata": {}}
    return json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


IMPORTS = {
    "plain": "import saving\nmain = saving.save\n",
    "renamed": "import saving as s\nmain = s.save\n",
    "from": "from saving import save as main\n",
    "continued": "from \\\n  saving import save as main\n",
    "names on the next line": "from saving import \\\n  save as main\n",
    "in parentheses": "from saving import (  # all of it\n  save as main,\n)\n",
    "in a function": "def main(model):\n  from saving import save\n  save(model)\n",
    "relative": "from .saving import save as main\n",
    "from the folder": "from . import saving\nmain = saving.save\n",
    "from the folder, continued": "from . import \\\n  saving\nmain = saving.save\n",
    "star": "from saving import *\nmain = save\n",
}


def check_alone(project: Project) -> None:
    """Only the whole program tells that every rank writes the file."""
    assert [one.code for one in findings(project)] == ["DDP401"]
    everything = findings(replace(project, targets=frozenset(project.files)))
    assert set(findings(project)) <= set(everything)


@pytest.mark.parametrize("text", IMPORTS.values(), ids=IMPORTS.keys())
def test_what_starts_the_program_is_found_from_its_part(text: str) -> None:
    start = f"{HEAD}{text}if __name__ == '__main__':\n  {STARTS}\n"
    check_alone(of_texts(saving__py=SAVING, start__py=start))


def test_a_notebook_starts_a_program() -> None:
    text = f"{HEAD}from saving import save as main\n{STARTS}\n"
    check_alone(of_texts(saving__py=SAVING, start__ipynb=notebook(text)))


def test_a_notebook_that_only_calls_starts_a_program() -> None:
    text = "from steps import run\nrun()\n"
    steps = f"{HEAD}from saving import save as main\ndef run():\n  {STARTS}\n"
    check_alone(of_texts(saving__py=SAVING, steps__py=steps, start__ipynb=notebook(text)))


def test_the_start_of_a_program_may_be_far_from_its_part() -> None:
    start = "from steps import run\nif __name__ == '__main__':\n  run()\n"
    steps = "import parts\ndef run():\n  parts.all_of_it()\n"
    parts = f"{HEAD}from saving import save as main\ndef all_of_it():\n  {STARTS}\n"
    check_alone(of_texts(saving__py=SAVING, parts__py=parts, steps__py=steps, start__py=start))
