"""What a project says of the PyTorch that it runs with, in the words of each installer."""

from __future__ import annotations

from pathlib import Path

import pytest

from ddp_lint.model.requirements import Version, read_requirements
from tests import markers


@pytest.mark.parametrize(
    ("name", "line", "oldest", "end"),
    [
        ("requirements.txt", "torch==1.7.0+cu110", (1, 7, 0), (1, 7, 1)),
        ("requirements.txt", "torch == 1.7.*  # why", (1, 7), (1, 8)),
        ("requirements.txt", "torch>=1.7,<2.3.0", (1, 7), (2, 3)),
        ("requirements.txt", "torch[extra] <= 2.2 ; python_version < '3.9'", None, (2, 3)),
        ("requirements.txt", "torch~=2.1.0", (2, 1, 0), (2, 2)),
        ("requirements.txt", "torch~=2.1", (2, 1), (3,)),
        ("requirements_dev.txt", "torch>1.7, !=1.9", (1, 7), None),
        ("setup.py", "    install_requires=['numpy', 'torch >= 1.6, < 2'],", (1, 6), (2,)),
        ("setup.cfg", "    torch (>=1.6)", (1, 6), None),
        ("pyproject.toml", 'dependencies = ["torch>=2.4"]', (2, 4), None),
        ("pyproject.toml", 'torch = "^1.7"', (1, 7), (2,)),
        ("pyproject.toml", 'torch = { version = "~1.7.1", optional = true }', (1, 7, 1), (1, 8)),
        ("environment.yml", "  - pytorch=1.13.1=py3.8_cuda11.7_0", (1, 13, 1), (1, 13, 2)),
        ("environment.yml", "  - pytorch::pytorch 1.7.*", (1, 7), (1, 8)),
        ("environment.yml", "    - torch==1.7.1", (1, 7, 1), (1, 7, 2)),
    ],
)
def test_bounds(name: str, line: str, oldest: Version | None, end: Version | None) -> None:
    (found,) = read_requirements(name, f"numpy\n{line}\n")
    assert (found.oldest, found.end) == (oldest, end)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("requirements.txt", "torch"),
        ("requirements.txt", "# torch==1.7"),
        ("requirements.txt", "torch-geometric==1.7"),
        ("requirements.txt", "torch!=1.7"),
        ("requirements.txt", "torch @ https://example.org/torch.whl"),
        ("pyproject.toml", 'torch = "*"'),
        ("pyproject.toml", 'torch = "^1.7 || ^2.0"'),
        ("environment.yml", "  - pytorch"),
        ("environment.yml", "  - pytorch-cuda=11.8"),
    ],
)
def test_nothing_that_is_a_bound(name: str, line: str) -> None:
    assert not list(read_requirements(name, line))


CODE = "import torch\nscaler = torch.cuda.amp.GradScaler()\n"


def said(folder: Path) -> list[tuple[str, bool]]:
    (folder / "train.py").write_text(CODE)
    return [
        (one.message, one.fix is not None) for one in markers.findings(markers.project_of(folder))
    ]


def test_the_oldest_that_is_allowed_keeps_the_old_name(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch>=1.7\n")
    ((message, is_fixed),) = said(tmp_path)
    assert "`torch>=1.7` allows older ones" in message
    assert not is_fixed


def test_a_newer_one_has_a_fix(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch>=2.3\n")
    ((message, is_fixed),) = said(tmp_path)
    assert "older" not in message
    assert is_fixed


@pytest.mark.parametrize("raw", [b"\xff\xfe\x00", b"\x00\xff torch", b"torch=="])
def test_what_cannot_be_read_says_nothing(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "requirements.txt").write_bytes(raw)
    (tmp_path / "setup.cfg").mkdir()
    (tmp_path / "pyproject.toml").symlink_to("nowhere")
    assert said(tmp_path)


def test_as_powershell_writes_it(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch==1.7.0\n", encoding="utf-16")
    assert not said(tmp_path)
