"""The real pre-commit with the hook of this repository, and with the plugin in flake8's hook."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_flake8 import DATA, TOLD, TRAIN
from tests.test_packaging import _LEFT_OVER as LEFT_OVER

pytest.importorskip("pre_commit")
ROOT = Path(__file__).parent.parent

OUR_HOOK = """\
repos:
  - repo: {source}
    rev: {revision}
    hooks:
      - id: ddp-lint
"""
FLAKE8_HOOK = """\
repos:
  - repo: local
    hooks:
      - id: flake8
        name: flake8
        entry: flake8 --select=DDP
        language: python
        types: [python]
        additional_dependencies: ["{source}", "flake8>=6"]
"""


def git(folder: Path, *words: str) -> str:
    identity = ["-c", "user.name=Someone", "-c", "user.email=someone@example.com"]
    command = ["git", "-C", str(folder), *identity, *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This checkout as a repository with one commit."""
    folder = tmp_path_factory.mktemp("source") / "ddp-lint"
    shutil.copytree(ROOT, folder, ignore=LEFT_OVER)
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "all of it")
    return folder


@pytest.mark.parametrize("form", [OUR_HOOK, FLAKE8_HOOK], ids=["hook", "flake8"])
def test_pre_commit(form: str, source: Path, tmp_path: Path) -> None:
    user = tmp_path / "user"
    user.mkdir()
    git(user, "init", "-q")
    text = form.format(source=source.as_posix(), revision=git(source, "rev-parse", "HEAD"))
    (user / ".pre-commit-config.yaml").write_text(text)
    (user / "train.py").write_text(TRAIN)
    (user / "data.py").write_text(DATA)
    git(user, "add", "-A")

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pre_commit", "run", *words]
        environment = {**os.environ, "PRE_COMMIT_HOME": str(tmp_path / "cache")}
        return subprocess.run(command, cwd=user, env=environment, capture_output=True, text=True)

    failed = run("--all-files")
    assert failed.returncode == 1, failed.stdout + failed.stderr
    assert "train.py:9:5: DDP301 " in failed.stdout
    # Only the file that changes is handed over; what makes it right lies in the other one.
    git(user, "commit", "-qm", "broken", "--no-verify")
    (user / "train.py").write_text(TOLD)
    git(user, "add", "train.py")
    passed = run()
    assert passed.returncode == 0, passed.stdout + passed.stderr
    assert "Passed" in passed.stdout
