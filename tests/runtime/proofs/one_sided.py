"""It judges its bad side only, which proves nothing about the mend."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from runtime_checks.harness import Check, Seen


def bad() -> Seen:
    return {"one": 1}


def good() -> Seen:
    return {"one": 1}


def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]:
    yield Check("one", bad[0]["one"], "==", 1, of="bad")
