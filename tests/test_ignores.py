"""Patterns decide as git does, and what git tracks is kept."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ddp_lint.ignores import Patterns, Tracked

PATTERNS = [
    "*.py[cod]",
    "build/",
    "/data",
    "logs/*.py",
    "a/**/z.py",
    "**/hidden/",
    "keep/**",
    "!keep/me.py",
    "# a comment",
    r"\#hash.py",
    r"\!bang.py",
    "spaced.py   ",
    r"trailing\ ",
    "[ab]c.py",
    "[!x]y.py",
    "q?.py",
    "sub/",
    "!sub/",
    "**",
    "lib*/x.py",
    "[unclosed.py",
    "foo**bar.py",
    "doc/frotz/",
    "*",
    "!*/",
    "!*.py",
]
PATHS = [
    "m.pyc",
    "x/m.pyo",
    "m.py",
    "build/a.py",
    "x/build/a.py",
    "data/a.py",
    "x/data/a.py",
    "logs/a.py",
    "x/logs/a.py",
    "logs/b/a.py",
    "a/z.py",
    "a/b/z.py",
    "a/b/c/z.py",
    "x/hidden/a.py",
    "hidden/a.py",
    "keep/me.py",
    "keep/you.py",
    "#hash.py",
    "!bang.py",
    "spaced.py",
    "trailing ",
    "ac.py",
    "cc.py",
    "xy.py",
    "zy.py",
    "q1.py",
    "q12.py",
    "sub/a.py",
    "lib64/x.py",
    "lib/x.py",
    "[unclosed.py",
    "fooxbar.py",
    "foo/x/bar.py",
    "doc/frotz/a.py",
    "x/doc/frotz/a.py",
]


@pytest.mark.parametrize(
    "lines", [*([pattern] for pattern in PATTERNS), PATTERNS[:18], PATTERNS[-3:]], ids=" ".join
)
def test_as_git_decides(lines: list[str], tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    for path in PATHS:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("")
    (tmp_path / ".gitignore").write_text("\n".join(lines) + "\n")
    asked = "\0".join(PATHS).encode()
    command = ["git", "check-ignore", "-z", "--stdin"]
    answer = subprocess.run(command, cwd=tmp_path, input=asked, capture_output=True).stdout
    by_git = {path for path in answer.decode().split("\0") if path}
    patterns = Patterns(lines)
    assert {path for path in PATHS if patterns.covers(path)} == by_git


@pytest.mark.parametrize("version", ["2", "3", "4"])
def test_tracked_in_spite_of_patterns(version: str, tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        subprocess.run(["git", "-C", str(tmp_path), *arguments], check=True, capture_output=True)

    git("init", "-q")
    git("config", "index.version", version)
    names = ["lib/data/loader.py", "lib/data/loader_of_long_name.py", "lib/é.py", "n.ipynb"]
    for name in [*names, "lib/other/left.py", "README.md"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    git("add", *names, "README.md")
    git("update-index", "--skip-worktree", names[0])  # an extended flag, where the version has it
    tracked = Tracked(str(tmp_path))
    assert all(map(tracked.holds, [*names, "lib", "lib/data"]))
    assert not any(map(tracked.holds, ["lib/other", "lib/other/left.py", "data", "lib/da", ""]))


def test_tracked_in_a_worktree(tmp_path: Path) -> None:
    main = tmp_path / "main"
    subprocess.run(["git", "init", "-q", main], check=True)
    (main / "train.py").write_text("")
    commit = ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one"]
    for arguments in (["add", "train.py"], commit, ["worktree", "add", "-q", "../tree"]):
        subprocess.run(["git", *arguments], cwd=main, check=True, capture_output=True)
    assert Tracked(str(tmp_path / "tree")).holds("train.py")


def test_nothing_tracked_without_a_repository(tmp_path: Path) -> None:
    assert not Tracked(str(tmp_path)).holds("train.py")
