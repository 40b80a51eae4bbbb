"""It cannot be shown here: the test makes a world without GPUs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from runtime_checks.harness import Check, Seen, needs

NEEDS = needs(gpu_per_rank=True)


def bad() -> Seen:
    raise AssertionError("must not run")


def good() -> Seen:
    raise AssertionError("must not run")


def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]:
    raise AssertionError("must not run")
    yield
