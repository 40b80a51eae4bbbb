"""What it calls bad is not: it has to be disproved, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from runtime_checks.context import rank
from runtime_checks.harness import Check, Seen


def bad() -> Seen:
    return {"answer": 41 + rank()}


def good() -> Seen:
    return {"answer": 42}


def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]:
    yield Check("answer", bad[rank()]["answer"], "==", 41, of="bad")
    yield Check("answer", good[rank()]["answer"], "==", 42, of="good")
