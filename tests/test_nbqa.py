"""nbQA runs flake8 on notebooks: the plugin has to find the same there, by cell and line."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ddp_lint.api import lint
from tests.test_flake8 import ROOT, config
from tests.test_notebook import notebook

pytest.importorskip("nbqa", reason="nbQA is not installed: pip install nbqa")

SETUP = "import torch\nfrom torch.utils.data import DataLoader, DistributedSampler"
MAGIC = "#! prose", "%matplotlib inline\n!ls"
TRAIN = """\
def main(model, dataset):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, sampler=sampler)
    for epoch in range(90):
        for inputs in loader:
            optimizer.zero_grad()
            loss = model(inputs).sum()
            loss.backward()
            optimizer.step()"""
MENDED = TRAIN.replace(
    "        for inputs", "        sampler.set_epoch(epoch)\n        for inputs"
)
CALL = "main(torch.nn.Linear(8, 1), torch.randn(64, 8))"


def nbqa(folder: Path) -> list[tuple[str, int, int, str]]:
    """Path and cell, line, column and code of what ``nbqa flake8`` says about a folder."""
    settings = config(folder.parent)
    ran = subprocess.run(
        [sys.executable, "-m", "nbqa", "flake8", ".", "--select=DDP", f"--config={settings}"],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
        },
        capture_output=True,
        text=True,
    )
    assert ran.returncode in (0, 1), ran.stdout + ran.stderr
    found = re.findall(r"^(\S+):(\d+):(\d+): (\w+) ", ran.stdout, re.M)
    assert len(found) == len(ran.stdout.splitlines()), ran.stdout
    return [(where, int(line), int(column), code) for where, line, column, code in found]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    return folder


def test_a_defect_is_found_in_its_cell_as_by_the_command(folder: Path) -> None:
    (folder / "train.ipynb").write_text(notebook(SETUP, *MAGIC, TRAIN, CALL), encoding="utf-8")
    found = nbqa(folder)
    # nbQA counts cells of code only.
    assert found == [("train.ipynb:cell_3", 5, 5, "DDP301")]
    (finding,) = lint(folder, isolated=True)
    assert [(finding.place.line, finding.place.column + 1, finding.code)] == [
        one[1:] for one in found
    ]


def test_a_mended_notebook_is_silent(folder: Path) -> None:
    (folder / "train.ipynb").write_text(notebook(SETUP, *MAGIC, MENDED, CALL), encoding="utf-8")
    assert nbqa(folder) == []


def test_what_a_module_beside_it_does_is_seen(folder: Path) -> None:
    """The helper that makes the sampler lies in a file that nbQA does not hand over."""
    made = "    loader, sampler = make(dataset)"
    train = re.sub(r"    sampler = .*\n.*", made, TRAIN)
    helper = (
        f"{SETUP}\n\n\ndef make(dataset):\n    sampler = DistributedSampler(dataset)\n"
        "    return DataLoader(dataset, sampler=sampler), sampler\n"
    )
    (folder / "loaders.py").write_text(helper, encoding="utf-8")
    cells = "import torch\nfrom loaders import make", train, CALL
    (folder / "train.ipynb").write_text(notebook(*cells), encoding="utf-8")
    assert nbqa(folder) == [("train.ipynb:cell_2", 4, 5, "DDP301")]
