"""Places as CI services want them: paths from the repository's root, lines of the file itself."""

from __future__ import annotations

import os
from pathlib import Path

from ddp_lint.finding import Place
from ddp_lint.notebook import line_in_file
from ddp_lint.report import Run

#: Where CI services say that the repository was checked out: GitHub, GitLab.
_ROOTS = ("GITHUB_WORKSPACE", "CI_PROJECT_DIR")


def root_of(run: Run) -> Path:
    """The root of the repository where a CI service tells it, else the folder of the run."""
    for name in _ROOTS:
        root = Path(os.environ.get(name) or "/nowhere")
        if run.cwd.is_relative_to(root):
            return root
    return run.cwd


def path_from_root(run: Run, path: str) -> str:
    """``path`` of a place from ``root_of(run)``, with ``/``; absolute where it lies outside."""
    whole = Path(os.path.normpath(run.cwd / path))
    root = root_of(run)
    return (whole.relative_to(root) if whole.is_relative_to(root) else whole).as_posix()


def lines_in_file(run: Run, place: Place) -> tuple[int, int]:
    """First and last line of ``place`` in the file as it lies on the disk.

    In a notebook these are lines of its JSON, which is what services show.
    """
    source = run.sources.get(place.path)
    if place.cell is None or source is None:
        return place.line, place.end_line
    text = source.whole_text
    return (
        line_in_file(text, place.cell, place.line),
        line_in_file(text, place.cell, place.end_line),
    )


def cell_and_line(place: Place) -> str:
    """``cell 3, line 2: `` in a notebook, to stand before a message; else nothing."""
    return "" if place.cell is None else f"cell {place.cell}, line {place.line}: "


def spoken(place: Place) -> str:
    """A place in running text: ``train.py:12``, ``train.ipynb:cell 3:12``."""
    cell = "" if place.cell is None else f"cell {place.cell}:"
    return f"{place.path}:{cell}{place.line}"
