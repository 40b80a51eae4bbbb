"""Which files a path stands for, and which project judges them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from ddp_lint.discovery import Found, discover
from ddp_lint.roots import root_of
from ddp_lint.sources import Project


def write(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")


def keys(found: Found) -> list[str]:
    """The targets of the only project."""
    (project,) = found.projects
    return sorted(project.targets)


def only(found: Found) -> Project:
    (project,) = found.projects
    return project


def test_a_file_and_its_repository(tmp_path: Path) -> None:
    write(tmp_path, ".git/config", "train.py", "lib/engine.py", "lib/notes.ipynb", "lib/data.txt")
    whole = only(discover([tmp_path], cwd=tmp_path))
    alone = only(discover([tmp_path / "lib" / "engine.py"], cwd=tmp_path))
    assert whole.root == alone.root == tmp_path
    assert list(whole.files) == list(alone.files)
    assert sorted(whole.targets) == ["lib/engine.py", "lib/notes.ipynb", "train.py"]
    assert alone.targets == {"lib/engine.py"}
    assert sorted(only(discover(["lib"], cwd=tmp_path)).targets) == [
        "lib/engine.py",
        "lib/notes.ipynb",
    ]


def test_names_are_relative_to_where_it_was_started(tmp_path: Path) -> None:
    write(tmp_path, "repo/.git/config", "repo/train.py", "repo/lib/engine.py")

    def names(cwd: Path) -> list[str]:
        project = only(discover([tmp_path / "repo"], cwd=cwd))
        return [source.name for source in project.files.values()]

    assert names(tmp_path) == ["repo/lib/engine.py", "repo/train.py"]
    assert names(tmp_path / "repo") == ["lib/engine.py", "train.py"]
    train = (tmp_path / "repo/train.py").as_posix()
    assert names(tmp_path / "repo/lib") == ["engine.py", train]


def test_left_out(tmp_path: Path) -> None:
    write(
        tmp_path,
        *("setup.py", "dist/comm.py", "dist/__init__.py", "build/lib/a.py", "pkg/build/a.py"),
        *(".venv/a.py", "venv/pyvenv.cfg", "venv/a.py", "conda/conda-meta/x", "conda/a.py"),
        *("node_modules/a.py", "pkg/__pycache__/a.py", "lib/site-packages/a.py", "env/gym.py"),
        *(".hidden/a.py", "a.pyi", "cache/CACHEDIR.TAG", "cache/a.py"),
    )
    assert keys(discover([tmp_path])) == [
        "dist/__init__.py",
        "dist/comm.py",
        "env/gym.py",
        "setup.py",
    ]


def test_named_in_spite_of_being_left_out(tmp_path: Path) -> None:
    write(tmp_path, ".git/config", ".hidden/a.py", "build/b.py", "logs/c.py", "logs/d.py", "e.py")
    (tmp_path / ".gitignore").write_text("logs/\n")
    assert keys(discover([tmp_path])) == ["e.py"]
    paths = [".hidden", "build", "logs/c.py"]
    assert keys(discover(paths, cwd=tmp_path)) == [".hidden/a.py", "build/b.py", "logs/c.py"]


def test_gitignore(tmp_path: Path) -> None:
    write(
        tmp_path, "setup.py", "out/a.py", "lib/gen/b.py", "lib/keep.py", "lib/drop.py", "x/drop.py"
    )
    (tmp_path / ".gitignore").write_text("/out\ngen/\n")
    (tmp_path / "lib/.gitignore").write_text("*.py\n!keep.py\n")
    assert keys(discover([tmp_path])) == ["lib/keep.py", "setup.py", "x/drop.py"]


def test_tracked_files_are_not_ignored(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    write(tmp_path, "data/loader.py", "data/scratch.py", "train.py")
    subprocess.run(["git", "add", "-f", "data/loader.py"], cwd=tmp_path, check=True)
    (tmp_path / ".gitignore").write_text("data/\n")
    assert keys(discover([tmp_path])) == ["data/loader.py", "data/scratch.py", "train.py"]


def test_a_repository_inside_is_a_project_of_its_own(tmp_path: Path) -> None:
    write(tmp_path, ".git/config", "train.py", "third/.git/config", "third/lib.py", "other/x.py")
    found = discover([tmp_path])
    assert [(one.root.name, sorted(one.targets)) for one in found.projects] == [
        (tmp_path.name, ["other/x.py", "train.py"]),
        ("third", ["lib.py"]),
    ]
    assert only(discover([tmp_path / "third/lib.py"])).root == tmp_path / "third"
    assert only(discover([tmp_path / "other"])).root == tmp_path


def test_several_projects_below_one_folder(tmp_path: Path) -> None:
    write(tmp_path, "one/.git/config", "one/a.py", "two/.git/config", "two/b.py")
    assert sorted(one.root.name for one in discover([tmp_path]).projects) == ["one", "two"]


@pytest.mark.parametrize(
    ("files", "folder", "root"),
    [
        (["README.md", "tools/train.py", "lib/a.py"], "tools", "."),
        (["setup.py", "examples/a/setup.py", "examples/a/x.py"], "examples/a", "."),
        (["train.py", "lib/a.py"], "lib", "."),
        (["lib/sub/a.py"], "lib/sub", "lib/sub"),
        (["site-packages/timm/__init__.py", "site-packages/six.py"], "site-packages/timm", None),
    ],
)
def test_root(files: list[str], folder: str, root: str | None, tmp_path: Path) -> None:
    write(tmp_path, *files)
    found = root_of(str(tmp_path / folder))
    if root is None:
        assert (found.path, found.base) == (
            str(tmp_path / "site-packages"),
            str(tmp_path / "site-packages/timm"),
        )
    else:
        assert found.path == found.base == str((tmp_path / root).resolve())


def test_an_installed_package_is_judged_by_its_full_name(tmp_path: Path) -> None:
    write(tmp_path, "site-packages/timm/__init__.py", "site-packages/timm/data/x.py")
    write(tmp_path, "site-packages/other/__init__.py")
    project = only(discover([tmp_path / "site-packages/timm/data"]))
    assert sorted(project.files) == ["timm/__init__.py", "timm/data/x.py"]
    assert project.targets == {"timm/data/x.py"}


def test_the_home_folder_is_no_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, ".git/config", "README.md", "a.py", "b.py", "code/c.py", "code/d.py")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    root_of.cache_clear()
    try:
        assert only(discover([tmp_path / "code/c.py"])).root == tmp_path / "code"
        assert list(only(discover([tmp_path / "a.py"])).files) == ["a.py", "b.py"]
        assert len(only(discover([tmp_path])).targets) == 4
    finally:
        root_of.cache_clear()


def test_link_loops(tmp_path: Path) -> None:
    write(tmp_path, "setup.py", "lib/a.py")
    os.symlink("..", tmp_path / "lib/up")
    os.symlink("self.py", tmp_path / "self.py")
    os.symlink("lib/a.py", tmp_path / "again.py")
    os.symlink("nowhere", tmp_path / "dangling.py")
    assert keys(discover([tmp_path])) == ["lib/a.py", "setup.py"]
    assert keys(discover([tmp_path / "lib/up"])) == ["lib/a.py", "setup.py"]


def test_a_linked_file_from_elsewhere_counts(tmp_path: Path) -> None:
    write(tmp_path, "repo/setup.py", "shared/util.py")
    os.symlink("../shared/util.py", tmp_path / "repo/util.py")
    assert keys(discover([tmp_path / "repo"])) == ["setup.py", "util.py"]


def test_missing_and_empty(tmp_path: Path) -> None:
    write(tmp_path, "docs/a.md", "notes.txt", "train.py")
    os.symlink("gone", tmp_path / "link")
    found = discover(["nope.py", "link", "docs", "notes.txt", "train.py"], cwd=tmp_path)
    assert [(one.path, one.message) for one in found.missing] == [
        ("nope.py", "does not exist"),
        ("link", "is a link that leads nowhere"),
    ]
    assert [one.path for one in found.empty] == ["notes.txt", "docs"]
    assert keys(found) == ["train.py"]


def test_a_script_without_a_suffix(tmp_path: Path) -> None:
    (tmp_path / "train").write_text("#!/usr/bin/env python3\n")
    (tmp_path / "run").write_text("#!/bin/sh\n")
    found = discover(["train", "run"], cwd=tmp_path)
    assert keys(found) == ["train"]
    assert [one.path for one in found.empty] == ["run"]


def test_given_text_for_a_file_that_is_not_there(tmp_path: Path) -> None:
    write(tmp_path, "setup.py")
    project = only(discover(["new.py"], cwd=tmp_path, given={tmp_path / "new.py": "x = 1\n"}))
    assert project.targets == {"new.py"}
    assert project.files["new.py"].text == "x = 1\n"
    assert "setup.py" in project.files


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="needs folders that are closed")
def test_a_folder_that_cannot_be_opened(tmp_path: Path) -> None:
    write(tmp_path, "setup.py", "closed/a.py")
    (tmp_path / "closed").chmod(0)
    found = discover([tmp_path], cwd=tmp_path)
    (tmp_path / "closed").chmod(0o755)
    assert [(one.path, one.message) for one in found.problems] == [
        ("closed", "cannot be opened: Permission denied")
    ]
    assert keys(found) == ["setup.py"]
