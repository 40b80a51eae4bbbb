"""It imports at its top what is not there, and says so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import no_such_package  # type: ignore[import-not-found]

from runtime_checks.harness import Check, Seen, needs

NEEDS = needs(modules=("no_such_package",))


def bad() -> Seen:
    return {"it": no_such_package.it}


def good() -> Seen:
    return {}


def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]:
    yield Check("it", bad, "!=", good, of="bad")
