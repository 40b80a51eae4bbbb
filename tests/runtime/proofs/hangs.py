"""Its bad side never ends on rank 1."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from runtime_checks.context import rank
from runtime_checks.harness import Check, Seen


def bad() -> Seen:
    while rank() == 1:
        time.sleep(0.1)
    return {}


def good() -> Seen:
    return {}


def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]:
    yield Check("reached", True, "==", True, of="bad")
    yield Check("reached", True, "==", True, of="good")
