"""Pictures that a proof can hand over, as data; ``page.py`` draws them from the record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class Lines:
    """Curves over one axis: ``series`` maps a name to its values, one per value of ``x``.

    Series named "bad" and "good" get the colours of the two sides.  ``log_y`` for ratios that
    span decades.
    """

    title: str
    x_label: str
    y_label: str
    x: Sequence[float]
    series: Mapping[str, Sequence[float]]
    log_x: bool = False
    log_y: bool = False


@dataclass(frozen=True)
class Bars:
    """One bar a name; names that begin with "bad" or "good" get the colours of the two sides."""

    title: str
    y_label: str
    bars: Mapping[str, float]
    log_y: bool = False


@dataclass(frozen=True)
class Pairing:
    """Which steps of each rank meet in one all-reduce.

    ``bad`` and ``good``: per rank, the step that its k-th all-reduce belonged to.
    """

    title: str
    bad: Sequence[Sequence[int]]
    good: Sequence[Sequence[int]]


Picture: TypeAlias = Lines | Bars | Pairing
