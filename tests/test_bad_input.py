"""Whatever is in a file: one clear line about it, the rest linted, never a traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_flake8 import DATA, TRAIN

ROOT = Path(__file__).parent.parent


def check(folder: Path) -> tuple[int, dict[str, list[str]], list[str]]:
    """The exit code, the messages about files by path, and the codes found in train.py."""
    ran = command(folder, "--format", "json")
    assert ran.stderr == ""
    report = json.loads(ran.stdout)
    problems: dict[str, list[str]] = {}
    for one in report["problems"]:
        assert "\n" not in one["message"]
        problems.setdefault(one["path"], []).append(one["message"])
    return ran.returncode, problems, [one["code"] for one in report["findings"]]


def command(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "ddp_lint", "check", *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(line, cwd=folder, env=environment, capture_output=True, text=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "data.py").write_text(DATA)
    return tmp_path


# Some mention torch and some do not: a broken file is named in any case.
BROKEN = {
    "syntax": b"import torch\nloss.backward(\n",
    "python 2": b"import torch\nprint 'loss', loss\n",
    "indentation": b"if 1:\n  x\n y\n",
    "nul": b"import torch\nx = '\0'\n",
    "utf-16": "import torch\n".encode("utf-16"),
    "latin-1 undeclared": "import torch\nx = 'é'\n".encode("latin-1"),
    "unknown encoding": b"# coding: klingon\nimport torch\n",
    "wrong encoding": b"# coding: ascii\nimport torch\nx = '\xc3\xa9'\n",
    "unclosed string": b"x = '''\n",
    "binary": bytes(range(256)) * 20,
}


def test_broken_files(folder: Path) -> None:
    for number, content in enumerate(BROKEN.values()):
        (folder / f"bad{number}.py").write_bytes(content)
    code, problems, codes = check(folder)
    assert code == 1
    said = {name: problems.get(f"bad{number}.py", []) for number, name in enumerate(BROKEN)}
    assert {name: len(messages) for name, messages in said.items()} == dict.fromkeys(BROKEN, 1)
    assert len(problems) == len(BROKEN)
    assert codes == ["DDP301"]


DEEP = 1000
FINE = {
    "empty": b"",
    "only a comment": b"# torch",
    "no newline at the end": b"import torch\nx = 1",
    "bom": b"\xef\xbb\xbfimport torch\n",
    "crlf": b"import torch\r\nif 1:\r\n    x = 1\r\n",
    "cr": b"import torch\rx = 1\r",
    "form feed": b"import torch\n\x0c\nx = 1\n",
    "latin-1": "# -*- coding: latin-1 -*-\nimport torch\nx = 'é'\n".encode("latin-1"),
    "unusual names": "import torch\nλ = 'ⅷ'\nµ = λ\n".encode(),
    "long function": b"import torch\ndef f(x):\n" + b"    x = x.sin()\n" * 10_000,
    "long list": b"import torch\nx = [" + b"1, " * 100_000 + b"]\n",
}


def test_unusual_files(folder: Path) -> None:
    for number, content in enumerate(FINE.values()):
        (folder / f"odd{number}.py").write_bytes(content)
    assert check(folder) == (1, {}, ["DDP301"])


NESTED = {
    "parentheses": "x = " + "(" * DEEP + "1" + ")" * DEEP,
    "sum": "x = 1" + " + y" * DEEP,
    "calls": "x = " + "f(" * DEEP + ")" * DEEP,
    "attributes": "x = y" + ".z" * DEEP,
    "subscripts": "x = y" + "[0]" * DEEP,
    "unary": "x = " + "-" * DEEP + "1",
    "conditions": "x = " + "1 if y else " * DEEP + "2",
    "elif": "if a == 0:\n    pass\n" + "".join(f"elif a == {n}:\n    pass\n" for n in range(DEEP)),
    "functions": "".join(" " * n + f"def f{n}():\n" for n in range(90)) + " " * 90 + "pass",
    "strings": "x = " + "'a' " * DEEP,
}


@pytest.mark.parametrize("text", NESTED.values(), ids=NESTED.keys())
def test_deep_nesting(text: str, folder: Path) -> None:
    """Linted, or named as too deep: Python itself refuses some of these."""
    (folder / "deep.py").write_text(f"import torch\nimport torch.distributed as dist\n{text}\n")
    code, problems, codes = check(folder)
    assert code == 1
    assert codes == ["DDP301"]
    assert set(problems) <= {"deep.py"}
    assert all(len(messages) == 1 for messages in problems.values())


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="everything can be read")
def test_unreadable_file(folder: Path) -> None:
    (folder / "closed.py").write_text("import torch\n")
    (folder / "closed.py").chmod(0)
    code, problems, codes = check(folder)
    assert (code, codes) == (1, ["DDP301"])
    assert problems == {"closed.py": ["cannot be read: Permission denied"]}


def test_file_that_goes_away(folder: Path) -> None:
    """A link to a file that nobody may follow is no file; a folder called like a file neither."""
    os.symlink("gone.py", folder / "link.py")
    os.symlink("loop.py", folder / "loop.py")
    (folder / "folder.py").mkdir()
    (folder / "folder.py" / "inside.py").write_text("x = 1\n")
    assert check(folder) == (1, {}, ["DDP301"])


BOOKS = {
    "no json": "not json",
    "no cells": "{}",
    "a list": "[]",
    "null cells": '{"cells": null}',
    "deep": '{"cells": ' + "[" * 20_000 + "]" * 20_000 + "}",
}


def test_broken_notebooks(folder: Path) -> None:
    for number, text in enumerate(BOOKS.values()):
        (folder / f"bad{number}.ipynb").write_text(text)
    code, problems, codes = check(folder)
    assert (code, codes) == (1, ["DDP301"])
    assert sorted(problems) == [f"bad{number}.ipynb" for number in range(len(BOOKS))]


def test_a_pipe_is_neither_file_nor_folder(folder: Path) -> None:
    os.mkfifo(folder / "pipe.py")
    ran = command(folder, "pipe.py", "train.py")
    assert ran.returncode == 2
    assert ran.stderr == "ddp-lint: pipe.py is not a file or folder\n"
    assert "DDP301" in ran.stdout
