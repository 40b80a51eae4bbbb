"""The Python API: lists of findings from paths and from text."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import ddp_lint
from ddp_lint.settings import SettingsError

pytestmark = pytest.mark.usefixtures("engine", "folder")


def codes(findings: list[ddp_lint.Finding]) -> list[str]:
    return [finding.code for finding in findings]


def test_paths() -> None:
    Path("a.py").write_text("find_DDP101\n")
    Path("b.py").write_text("x = 1\nfind_DDP201\n")
    (one,) = ddp_lint.lint("a.py")
    assert (one.code, one.level, one.place.path, one.place.line) == (
        "DDP101",
        "warning",
        "a.py",
        1,
    )
    assert codes(ddp_lint.lint(Path("b.py"))) == ["DDP201"]
    assert codes(ddp_lint.lint([Path("b.py"), "a.py"])) == ["DDP101", "DDP201"]
    assert codes(ddp_lint.lint(".", select=["DDP2"])) == ["DDP201"]
    assert codes(ddp_lint.lint(".", ignore=["clip-before-unscale"])) == ["DDP101"]
    assert codes(ddp_lint.lint(".", exclude=["a.*"])) == ["DDP201"]


def test_settings_count_unless_isolated() -> None:
    Path("a.py").write_text("find_DDP101\n")
    Path("pyproject.toml").write_text("[tool.ddp-lint]\nignore = ['DDP101']\n")
    assert ddp_lint.lint("a.py") == []
    assert codes(ddp_lint.lint("a.py", isolated=True)) == ["DDP101"]


def test_what_is_wrong_is_raised() -> None:
    Path("a.py").write_text("")
    with pytest.raises(FileNotFoundError, match=r"gone\.py does not exist"):
        ddp_lint.lint(["a.py", "gone.py"])
    with pytest.raises(SettingsError, match="no rule is called 'DDP777'"):
        ddp_lint.lint("a.py", select=["DDP777"])
    with pytest.raises(SettingsError):
        ddp_lint.lint_source("x = 1", ignore=["nothing"])


def test_a_file_that_cannot_be_linted_is_a_warning() -> None:
    Path("a.py").write_text("find_DDP101\n")
    Path("b.py").write_text("x = (\n")
    with pytest.warns(UserWarning, match=r"^b\.py:1: ") as caught:
        assert codes(ddp_lint.lint(".")) == ["DDP101"]
    assert caught[0].filename == __file__


def test_a_file_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """By whatever it is; root may read all files, so the refusal is played."""
    Path("a.py").write_text("find_DDP101\n")
    Path("closed.py").write_text("find_DDP101\n")
    read = Path.read_bytes

    def refuse(path: Path) -> bytes:
        if path.name == "closed.py":
            raise PermissionError(13, os.strerror(13))
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.warns(UserWarning, match=r"^closed\.py: cannot be read: Permission denied$"):
        assert codes(ddp_lint.lint(".")) == ["DDP101"]


def test_nothing_to_lint_is_a_warning() -> None:
    Path("docs").mkdir()
    with pytest.warns(UserWarning, match="docs: holds no Python files"):
        assert ddp_lint.lint("docs") == []


def test_text() -> None:
    (one,) = ddp_lint.lint_source("x = 1\nfind_DDP201\n")
    assert (one.place.path, one.place.line, one.place.column) == ("<string>", 2, 0)
    assert codes(ddp_lint.lint_source("find_DDP201\nfind_DDP101", select=["DDP1"])) == ["DDP101"]
    assert ddp_lint.lint_source("find_DDP201  # noqa\n") == []
    with pytest.warns(UserWarning, match="<string>:1: "):
        assert ddp_lint.lint_source("x = (") == []


def test_text_in_place_of_a_file() -> None:
    Path("a.py").write_text("x = 1\n")
    Path("pyproject.toml").write_text("[tool.ddp-lint]\nignore = ['DDP101']\n")
    text = "find_DDP201\nfind_DDP101\n"
    for path in ("a.py", "new.py"):
        (one,) = ddp_lint.lint_source(text, path)
        assert (one.code, one.place.path) == ("DDP201", path)
    assert codes(ddp_lint.lint_source(text, "a.py", isolated=True)) == ["DDP201", "DDP101"]
