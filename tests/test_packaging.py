"""Wheel, sdist, both kinds of install and a bare checkout all have every rule.

Everything is built from a clean copy, so that nothing left over from another build helps.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path
from zipfile import ZipFile

import pytest

from ddp_lint import __version__
from ddp_lint.registry import all_rules

ROOT = Path(__file__).parent.parent
PACKAGES = {
    "ddp_lint": "ddp_lint",
    "rules": "ddp_lint/rules",
    "runtime_checks": "ddp_lint/runtime_checks",
}
_LEFT_OVER = shutil.ignore_patterns(
    ".git", ".venv*", "build", "dist", "*.egg-info", "__pycache__", ".*_cache", "out", "site"
)


def run(*command: str | Path, cwd: Path) -> str:
    """What the command prints.  Dependencies come from the environment of the tests."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environment["PYTHONPATH"] = sysconfig.get_path("purelib")
    ran = subprocess.run(
        [str(word) for word in command], cwd=cwd, env=environment, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def interpreter(venv: Path) -> Path:
    """A new environment without anything in it."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    return venv / ("Scripts" if os.name == "nt" else "bin") / "python"


def pip(python: Path, *words: str | Path) -> None:
    command = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", *words]
    ran = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("copy") / "ddp-lint"
    shutil.copytree(ROOT, target, ignore=_LEFT_OVER)
    return target


@pytest.fixture(scope="module")
def built(copy: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The wheel, built from the sdist, and the sdist."""
    out = tmp_path_factory.mktemp("built")
    python = interpreter(out / "venv")
    pip(python, "setuptools>=77")
    backend = "import sys; from setuptools import build_meta as b; b.build_{}(sys.argv[1])"
    subprocess.run([python, "-c", backend.format("sdist"), out], cwd=copy, check=True, stdout=-3)
    (sdist,) = out.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(out / "unpacked", filter="data")
    (source,) = (out / "unpacked").iterdir()
    subprocess.run([python, "-c", backend.format("wheel"), out], cwd=source, check=True, stdout=-3)
    (wheel,) = out.glob("*.whl")
    return wheel, sdist


def test_wheel_holds_all_of_it_and_no_other_name(built: tuple[Path, Path], copy: Path) -> None:
    wheel, _ = built
    assert wheel.name == f"ddp_lint-{__version__}-py3-none-any.whl"
    names = set(ZipFile(wheel).namelist())
    ours = {name for name in names if ".dist-info/" not in name}
    assert {name.partition("/")[0] for name in ours} == {"ddp_lint"}
    expected = {
        f"{target}/{path.relative_to(copy / folder).as_posix()}"
        for folder, target in PACKAGES.items()
        for path in (copy / folder).rglob("*")
        if path.is_file()
    }
    assert ours == expected
    assert any(name.endswith("licenses/LICENSE") for name in names)


@pytest.mark.parametrize("kind", ["wheel", "sdist", "folder", "editable"])
def test_every_install_finds_all_rules(
    kind: str, built: tuple[Path, Path], copy: Path, tmp_path: Path
) -> None:
    wheel, sdist = built
    source: dict[str, list[str | Path]] = {
        "wheel": [wheel],
        "sdist": [sdist],
        "folder": [copy],
        "editable": ["--editable", copy],
    }
    python = interpreter(tmp_path / "venv")
    pip(python, "--no-deps", *source[kind])
    # A user's own packages of those names are neither taken for ours nor in our way.
    for name in ("rules", "runtime_checks"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit('not ours')\n")
    listed = run(python.with_name("ddp-lint"), "rules", cwd=tmp_path)
    assert [line.split()[0] for line in listed.splitlines()[1:]] == list(all_rules())
    program = (
        "import ddp_lint.registry as r; print(*(p.stem for p in r.folder_of('{}').glob('*.py')))"
    )
    for part in ("rules", "runtime_checks"):
        stems = run(python, "-c", program.format(part), cwd=tmp_path).split()
        assert sorted(stems) == sorted(path.stem for path in (ROOT / part).glob("*.py"))
    assert f"ddp-lint {__version__}" in run(python, "-m", "ddp_lint", "--version", cwd=tmp_path)


def test_a_bare_checkout_finds_all_rules(copy: Path, tmp_path: Path) -> None:
    listed = run(sys.executable, "-m", "ddp_lint", "rules", cwd=copy)
    assert [line.split()[0] for line in listed.splitlines()[1:]] == list(all_rules())


def test_an_installation_without_rules_is_an_error(copy: Path, tmp_path: Path) -> None:
    shutil.copytree(copy / "ddp_lint", tmp_path / "ddp_lint")
    command = [sys.executable, "-m", "ddp_lint", "rules"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode != 0
    assert "ddp-lint is not installed properly: no rules in " in ran.stderr


def test_torch_and_flake8_are_not_needed(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch\n")
    program = (
        "import sys\n"
        "for name in ('torch', 'flake8', 'numpy'):\n    sys.modules[name] = None\n"
        "from ddp_lint.cli import main\n"
        f"sys.exit(main(['check', {str(tmp_path / 'train.py')!r}]))\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert ran.stdout == "No findings in 1 file.\n", ran.stderr


def test_importing_the_package_is_light() -> None:
    program = "import sys, ddp_lint; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert {name for name in ran.stdout.split() if name.startswith(("ddp_lint", "astroid"))} == {
        "ddp_lint"
    }
