"""What a rule is: a page of prose with examples, and a check.

A rule file is a module whose docstring is its page and that declares one check:

    @rule("DDP201", level="error")
    def check(program: Program) -> Findings:
        for clip in program.clips:
            if clip.before_unscale:
                yield clip.finding("...")

Nothing else is needed: the name of the file is the name of the rule.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from textwrap import dedent
from typing import TYPE_CHECKING, Literal, TypeAlias

from ddp_lint.finding import Draft, Level

if TYPE_CHECKING:
    from ddp_lint.model import Program

Findings: TypeAlias = Iterator[Draft]
Check: TypeAlias = Callable[["Program"], Findings]
Fixes: TypeAlias = Literal["", "safe", "unsafe"]

_EXAMPLE = re.compile(r"^(Bad|Good)(?: \(([^)]*)\))?:\n\n```python\n(.*?)^```", re.M | re.S)


@dataclass(frozen=True)
class Example:
    """A fenced example of a page.  ``verdict`` is "bad" or "good"; ``title`` may be empty."""

    verdict: str
    title: str
    code: str


@dataclass(frozen=True)
class Rule:
    """One rule of the catalogue.

    ``on`` is False for rules that speak only when selected by their code.  ``fixes`` says
    whether (some of) its findings carry a fix, and of which kind.
    """

    code: str
    name: str
    level: Level
    on: bool
    fixes: Fixes
    page: str
    check: Check

    @property
    def stem(self) -> str:
        """The name of its files: ``rules/<stem>.py``, ``tests/cases/<stem>.py`` and so on."""
        return self.name.replace("-", "_")

    @property
    def summary(self) -> str:
        """The first sentence of the page."""
        return self.page.partition("\n")[0]

    @cached_property
    def examples(self) -> list[Example]:
        return [
            Example(verdict.lower(), title or "", code)
            for verdict, title, code in _EXAMPLE.findall(self.page)
        ]


def rule(
    code: str, *, level: Level, on: bool = True, fixes: Fixes = ""
) -> Callable[[Check], Rule]:
    """Declare the rule of this file; the file's docstring is its page."""

    def declare(check: Check) -> Rule:
        module = sys.modules[check.__module__]
        name = module.__name__.rpartition(".")[2].replace("_", "-")
        page = dedent(module.__doc__ or "").strip()
        return Rule(code, name, level, on, fixes, page, check)

    return declare
