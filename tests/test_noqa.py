"""noqa comments: as flake8 reads them, and where we go beyond that on purpose."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ddp_lint.finding import Place
from ddp_lint.noqa import Noqa
from ddp_lint.sources import SourceFile


def suppressed(text: str, code: str = "F821", name: str = "a.py") -> set[int]:
    """The lines on which a finding of ``code`` would be suppressed."""
    noqa = Noqa(SourceFile(Path(name), name, text))
    lines = range(1, len(text.splitlines()) + 1)
    return {line for line in lines if noqa.find(Place(name, line, 0, line, 1), code)}


# On every line of these `undefined` may stand, an F821 to flake8 in each place.
AS_FLAKE8 = [
    "undefined  # noqa",
    "undefined  # NOQA",
    "undefined  # NoQa: F821",
    "undefined  # noqa:F821",
    "undefined  # noqa: E501,F821",
    "undefined  # noqa: E501, F821",
    "undefined  # noqa: E501 F821",
    "undefined  # noqa: E501  ,  F821",
    "undefined  # noqa: E501",
    "undefined  # noqa: F8",
    "undefined  # noqa: F8211",
    "undefined  # noqa: E501F821",
    "undefined  # noqa : E501",
    "undefined  # noqa: because",
    "undefined  # noqa: F821 because it is defined elsewhere",
    "undefined  #noqa",
    "undefined  #  noqa",
    "undefined  # a word before # noqa",
    "undefined  # type: ignore # noqa: F821",
    "undefined  # noqa-ish",
    "# noqa\nundefined",
    "undefined\n# noqa",
    "undefined = 1; undefined2  # noqa",
    "x = \\\n    undefined  # noqa",
    "x = undefined + \\\n    1  # noqa",
    "x = undefined + '''\n'''  # noqa",
    "x = f'''{undefined}\n'''  # noqa",
    "if undefined:  # noqa\n    undefined",
    "# flake8: noqa\nundefined",
    "undefined\n# flake8: noqa\n",
    "undefined\n    # FLAKE8: NOQA\n",
    "# flake8: noqa: E501\nundefined",
    "# flake8=noqa\nundefined",
    "undefined  # flake8: noqa",
    "def f():\n    undefined  # noqa\n    undefined\n",
    "x = 1\n\n\n\nundefined  # noqa\r\nundefined\r\n",
]


@pytest.fixture(scope="module")
def by_flake8(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[set[int], set[int]]]:
    """For each text the lines with an F821, and those of them that flake8 reports."""
    folder = tmp_path_factory.mktemp("noqa")
    for number, text in enumerate(AS_FLAKE8):
        (folder / f"{number}.py").write_bytes(text.encode())

    def reported(*options: str) -> list[set[int]]:
        command = [sys.executable, "-m", "flake8", "--isolated", "--select=F821", *options]
        command += ["--format=%(path)s:%(row)d", "."]
        run = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        assert (run.returncode, run.stderr) == (1, "")
        rows: list[set[int]] = [set() for _ in AS_FLAKE8]
        for line in run.stdout.splitlines():
            path, row = line.split(":")
            rows[int(Path(path).stem)].add(int(row))
        return rows

    return list(zip(reported("--disable-noqa"), reported(), strict=True))


@pytest.mark.parametrize("number", range(len(AS_FLAKE8)), ids=AS_FLAKE8.__getitem__)
def test_as_flake8(number: int, by_flake8: list[tuple[set[int], set[int]]]) -> None:
    there, reported = by_flake8[number]
    assert there, "the text has nothing to suppress"
    assert suppressed(AS_FLAKE8[number]) & there == there - reported


def test_not_in_a_string() -> None:
    assert suppressed("x = '# noqa'\ny = '''\n# noqa\n'''\n") == set()
    assert suppressed("x = '# noqa: E501'  # noqa: F821\n") == {1}


def test_first_or_last_line_of_a_statement() -> None:
    assert suppressed("loss = f(  # noqa\n    1,\n    2,\n)\n") == {1, 2, 3, 4}
    assert suppressed("loss = f(\n    1,\n    2,\n)  # noqa\n") == {1, 2, 3, 4}
    assert suppressed("loss = f(\n    1,  # noqa\n    2,\n)\n") == {2}
    assert suppressed("loss = f(\n    # noqa\n    2,\n)\n") == {2}


def test_the_next_statement_is_not_meant() -> None:
    assert suppressed("with f(\n    1\n):  # noqa\n    loss.item()\nloss.item()\n") == {1, 2, 3}
    assert suppressed("@f(  # noqa\n    1\n)\ndef g():\n    pass\n") == {1, 2, 3}


def test_codes_and_prefixes() -> None:
    text = "a  # noqa: DDP101, DDP2\n"
    assert [suppressed(text, code) for code in ("DDP101", "DDP201", "DDP102")] == [{1}, {1}, set()]


def test_after_a_line_that_is_no_python() -> None:
    assert suppressed("x = (  # noqa\n!ls '\ny = 1  # noqa\n") >= {1, 3}


def test_in_a_notebook() -> None:
    cells = ["loss.item()\n", "x = 1\nloss.item()  # noqa\n"]
    document = {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {},
        "cells": [
            {"cell_type": "markdown", "source": ["# noqa"]},
            *({"cell_type": "code", "source": [cell]} for cell in cells),
        ],
    }
    noqa = Noqa(SourceFile(Path("a.ipynb"), "a.ipynb", json.dumps(document)))

    def is_suppressed(cell: int, line: int) -> bool:
        return noqa.find(Place("a.ipynb", line, 0, line, 1, cell), "DDP101") is not None

    assert not is_suppressed(2, 1)
    assert not is_suppressed(3, 1)
    assert is_suppressed(3, 2)


def test_directives_say_where_they_stand() -> None:
    noqa = Noqa(SourceFile(Path("a.py"), "a.py", "x = 1\ny = 2  # noqa: DDP1,DDP201\n"))
    (directive,) = noqa.directives
    assert (directive.line, directive.column, directive.text) == (2, 7, "# noqa: DDP1,DDP201")
    assert directive.codes == ("DDP1", "DDP201")
