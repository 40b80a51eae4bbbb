"""Notebooks: IPython's syntax is masked in place, cells are found again, rewriting is minimal."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from ddp_lint.ipython import mask
from ddp_lint.notebook import NotebookError, read_notebook, rewrite
from ddp_lint.sources import SourceFile, Unreadable


def notebook(*cells: str, **more: object) -> str:
    """A notebook whose cells are code, or prose where they begin with ``#!``."""
    return json.dumps(
        {
            "cells": [
                {
                    "cell_type": "markdown" if cell.startswith("#!") else "code",
                    "metadata": {"tags": ["kept"]},
                    "source": cell.splitlines(keepends=True),
                    **({} if cell.startswith("#!") else {"outputs": [{"text": ["x\n"]}]}),
                }
                for cell in cells
            ],
            "metadata": {"language_info": {"name": "python"}},
            "nbformat": 4,
            "nbformat_minor": 5,
            **more,
        },
        indent=1,
    )


MASKED = [
    ("%matplotlib inline", "pass              "),
    ("x = 1\n!pip install torch\ny = 2", "x = 1\npass              \ny = 2"),
    ("%time loss.backward()", "pass ;loss.backward()"),
    ("if True:\n    %timeit step()", "if True:\n    pass   ;step()"),
    ("%timeit -n 10 step()", "pass                "),
    ("%time for x in y: pass", "pass                  "),
    ("files = !ls *.jpg", "files = _        "),
    ("out, err = %sx ls", "out, err = _     "),
    ("model.forward?", "pass          "),
    ("?model", "pass  "),
    ("model??", "pass   "),
    ("!ls \\\n  -l\nx = 1", "pass \n\nx = 1"),
    ("%%time\nx = 1", "\nx = 1"),
    ("%%capture out\nx = 1", "\nx = 1"),
    ("%%bash\nls -l | grep x", "\n"),
    ("\n%%html\n<b>", "\n\n"),
    ("%%writefile train.py\nimport torch\n", "\n\n"),
]

PYTHON = [
    "x = (a\n  % b)",
    "x = '''\n%time\n!ls\n'''",
    "x = a \\\n  % b",
    "print('%d' % x)",
    "a != b",
    "x = {'a': 1,\n  }\ny = x['a'] % 2",
    'x = "it\'s"\ny = 1 % 2',
    "s = 'a \\\n% b'",
    "f(a,\n*b)",
    "# what?\nx = 1",
    "plt.show();",
]


@pytest.mark.parametrize(("code", "masked"), MASKED)
def test_ipython_syntax_is_masked_in_place(code: str, masked: str) -> None:
    assert mask(code) == masked
    ast.parse(mask(code))
    assert mask(code).count("\n") == code.count("\n")


@pytest.mark.parametrize("code", PYTHON)
def test_python_is_left_as_it_is(code: str) -> None:
    ast.parse(code)
    assert mask(code) == code


def test_a_line_leads_back_to_its_cell() -> None:
    read = read_notebook(notebook("import torch\n", "#! prose", "%time f()\nloss.item()"))
    at = read.source.split("\n").index("loss.item()") + 1
    cell, before = read.locate(at)
    assert (cell, at - before) == (3, 2)
    assert read.written_line(3, 1) == "%time f()"
    assert read.start_of(3) == before


def test_a_broken_cell_is_named_and_the_rest_is_kept() -> None:
    read = read_notebook(notebook("x = 1", "print 'old'\ny = 1", "z = 3"))
    assert [(fault.cell, fault.line) for fault in read.broken] == [(2, 1)]
    assert read.source == "x = 1\n\n\nz = 3"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "JSON"),
        ("[]", "list of cells"),
        ('{"cells": 3}', "no list"),
        ('{"cells": [], "metadata": {"kernelspec": {"language": "julia"}}}', "julia"),
    ],
)
def test_what_is_no_python_notebook_is_said(text: str, reason: str) -> None:
    with pytest.raises(NotebookError, match=reason):
        read_notebook(text)


def test_format_3_is_read() -> None:
    old = {"worksheets": [{"cells": [{"cell_type": "code", "input": ["x = 1\n", "y = 2"]}]}]}
    text = json.dumps(old)
    assert read_notebook(text).source == "x = 1\ny = 2"
    assert rewrite(text, {1: "x = 1\ny = 3"}) == text.replace("y = 2", "y = 3")


@pytest.mark.parametrize("indent", [None, 1, 4, "\t"])
def test_rewriting_changes_only_the_lines_that_change(indent: int | str | None) -> None:
    document = json.loads(notebook("a = 1\nb = 'é'\nc = 3", "#! a = 1", "d = 4"))
    for ascii_only in (True, False):
        text = json.dumps(document, indent=indent, ensure_ascii=ascii_only) + "\n"
        assert rewrite(text, {1: "a = 1\nb = 'é'\nc = 3", 3: "d = 4"}) == text
        assert rewrite(text, {3: "d = 5"}) == text.replace("d = 4", "d = 5")
        longer = rewrite(text, {1: "a = 1\nnew = 'é'\nb = 'é'\nc = 3"})
        expected = json.loads(text)
        expected["cells"][0]["source"] = ["a = 1\n", "new = 'é'\n", "b = 'é'\n", "c = 3"]
        assert json.loads(longer) == expected
        assert longer == json.dumps(expected, indent=indent, ensure_ascii=ascii_only) + "\n"


def test_a_source_that_is_one_string_stays_one() -> None:
    text = '{"cells":[{"source":"a = 1\\nb","cell_type":"code","outputs":[{"source":"a"}]}]}'
    assert rewrite(text, {1: "a = 2\nb"}) == text.replace("a = 1", "a = 2")


def test_a_notebook_without_code_is_empty() -> None:
    assert read_notebook(notebook("#! prose")).source == ""


def test_places_in_a_notebook_count_in_the_cell(tmp_path: Path) -> None:
    path = tmp_path / "a.ipynb"
    path.write_text(notebook("import torch", "x = 'é'; loss.item()"), encoding="utf-8")
    file = SourceFile(path, "a.ipynb")
    place = file.place(2, 10, 2, 21)
    assert (place.cell, place.line, place.column) == (2, 1, 9)
    assert file.source_line(place) == "x = 'é'; loss.item()"


def test_a_notebook_in_another_language_is_unreadable(tmp_path: Path) -> None:
    text = notebook("x <- 1", metadata={"kernelspec": {"language": "R"}})
    with pytest.raises(Unreadable, match="in R"):
        SourceFile(tmp_path / "a.ipynb", "a.ipynb", given=text).text  # noqa: B018
