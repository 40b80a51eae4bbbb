"""A program from a few lines of text."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

from ddp_lint.model import Program
from ddp_lint.model.calls import Wiring
from ddp_lint.model.codebase import CodeBase
from ddp_lint.model.values import Values
from ddp_lint.sources import Project, SourceFile


def program_of(text: str, **others: str) -> Program:
    """The program whose entry point is ``text``; ``others`` are modules beside it, by name."""
    texts = {"main.py": text} | {f"{name}.py": other for name, other in others.items()}
    files = {key: SourceFile(Path(key), key, dedent(one)) for key, one in texts.items()}
    values = Values(CodeBase(Project(Path.cwd(), files, frozenset(files))))
    modules = [module for key in files if (module := values.load(key)) is not None]
    assert len(modules) == len(files), values.codebase.problems
    for module in modules:
        for cls in module.classes:
            values.mro(cls)
    return Program(Wiring(values), modules[:1])
