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


def check(folder: Path, *words: str) -> tuple[int, dict[str, list[str]], list[str]]:
    """The exit code, the messages about files by path, and the codes found in train.py."""
    command = [sys.executable, "-m", "ddp_lint", "check", "--format", "json", *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert "Traceback" not in ran.stderr, ran.stderr
    report = json.loads(ran.stdout)
    problems: dict[str, list[str]] = {}
    for one in report["problems"]:
        assert "\n" not in one["message"]
        problems.setdefault(one["path"], []).append(one["message"])
    return ran.returncode, problems, [one["code"] for one in report["findings"]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "data.py").write_text(DATA)
    return tmp_path


# Each mentions torch, so that nothing is left out because it cannot matter.
BROKEN = {
    "syntax": b"import torch\nloss.backward(\n",
    "python 2": b"import torch\nprint 'loss', loss\n",
    "indentation": b"import torch\nif 1:\n  x\n y\n",
    "nul": b"import torch\nx = '\0'\n",
    "utf-16": "import torch\n".encode("utf-16"),
    "latin-1 undeclared": "import torch\nx = 'é'\n".encode("latin-1"),
    "unknown encoding": b"# coding: klingon\nimport torch\n",
    "wrong encoding": b"# coding: ascii\nimport torch\nx = '\xc3\xa9'\n",
    "unclosed string": b"import torch\nx = '''\n",
    "binary": bytes(range(256)) * 20,
}


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN.keys())
def test_broken_file(content: bytes, folder: Path) -> None:
    (folder / "bad.py").write_bytes(content)
    code, problems, codes = check(folder)
    assert code == 1
    assert list(problems) == ["bad.py"]
    assert len(problems["bad.py"]) == 1
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


@pytest.mark.parametrize("content", FINE.values(), ids=FINE.keys())
def test_unusual_file(content: bytes, folder: Path) -> None:
    (folder / "odd.py").write_bytes(content)
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
    "a word as cell": '{"cells": ["x"]}',
    "deep": '{"cells": ' + "[" * 20_000 + "]" * 20_000 + "}",
}


@pytest.mark.parametrize("text", BOOKS.values(), ids=BOOKS.keys())
def test_broken_notebook(text: str, folder: Path) -> None:
    (folder / "bad.ipynb").write_text(text)
    code, problems, codes = check(folder)
    assert (code, list(problems), codes) == (1, ["bad.ipynb"], ["DDP301"])


def test_a_pipe_is_neither_file_nor_folder(folder: Path) -> None:
    os.mkfifo(folder / "pipe.py")
    command = [sys.executable, "-m", "ddp_lint", "check", "pipe.py", "train.py"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert ran.returncode == 2
    assert ran.stderr == "ddp-lint: pipe.py is not a file or folder\n"
    assert "DDP301" in ran.stdout
