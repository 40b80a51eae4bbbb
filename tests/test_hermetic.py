"""Nothing of the linted project runs, and nothing that is installed changes the answer."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.test_flake8 import DATA, TRAIN

ROOT = Path(__file__).parent.parent
MARK = "open({mark!r}, 'a').write(__file__ + '\\n')\n"
#: Files that Python, pytest, setuptools or an import would run, and names that shadow others.
PLANTED = [
    *("__init__.py", "conftest.py", "setup.py", "sitecustomize.py", "usercustomize.py"),
    *("torch.py", "torch/__init__.py", "torchvision/__init__.py", "astroid.py", "pathspec.py"),
    *("json.py", "dataclasses.py", "argparse.py", "tokenize.py", "symtable.py", "enum.py"),
    *("ddp_lint_plugin.py", "rules/__init__.py", "runtime_checks/__init__.py", "lib/__init__.py"),
    *("__main__.py", "tests/conftest.py", "noxfile.py", "manage.py"),
]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / ".git").mkdir(parents=True)
    (root / "train.py").write_text(TRAIN)
    (root / "data.py").write_text(DATA)
    return root


def check(
    project: Path, *more: str, path: list[Path] | None = None
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ddp_lint", "check", "--format=json", *more]
    search = os.pathsep.join(map(str, [ROOT, *(path or [])]))
    environment = {**os.environ, "PYTHONPATH": search}
    return subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True)


def test_nothing_of_the_project_runs(project: Path, tmp_path: Path) -> None:
    alone = check(project, "train.py").stdout
    mark = tmp_path / "mark"
    for name in PLANTED:
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(MARK.format(mark=str(mark)))
    (project / "planted.pth").write_text(f"import os; {MARK.format(mark=str(mark))}")
    (project / "pyproject.toml").write_text(
        "[build-system]\nrequires = []\nbuild-backend = 'setup'\nbackend-path = ['.']\n"
    )
    planted = check(project, "train.py")
    assert not mark.exists(), mark.read_text()
    assert planted.stdout == alone
    assert "DDP301" in alone
    assert planted.stderr == ""


def test_what_is_installed_does_not_matter(project: Path, tmp_path: Path) -> None:
    """With a torch in reach that means something else, with none, and with the real one."""
    other = tmp_path / "other"
    for name in ("torch/__init__.py", "torch/utils/__init__.py", "torch/utils/data/__init__.py"):
        (other / name).parent.mkdir(parents=True, exist_ok=True)
        (other / name).write_text("raise RuntimeError('imported')\nDataLoader = list\n")
    (other / "data.py").write_text("raise RuntimeError('imported')\n")
    here = check(project)
    assert "DDP301" in here.stdout
    with_other = check(project, path=[other])
    assert (with_other.stdout, with_other.stderr) == (here.stdout, here.stderr)
    # A Python that has what we need and nothing else.
    bare = tmp_path / "bare"
    bare.mkdir()
    packages = Path(sysconfig.get_path("purelib"))
    for name in ("astroid", "pathspec", "tomli", "typing_extensions.py"):
        if (packages / name).exists():
            (bare / name).symlink_to(packages / name)
    command = [sys.executable, "-I", "-S", "-c"]
    program = (
        f"import sys; sys.path[:0] = [{str(ROOT)!r}, {str(bare)!r}]\n"
        "from ddp_lint.cli import main; sys.exit(main(['check', '--format=json']))"
    )
    ran = subprocess.run([*command, program], cwd=project, capture_output=True, text=True)
    assert (ran.stdout, ran.stderr) == (here.stdout, here.stderr)
