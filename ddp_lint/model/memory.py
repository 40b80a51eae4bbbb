"""Layer 0, memory: what is computed once per node and must not outlive the run.

A cache on nodes keeps whole trees alive; an editor's process that lints all day would grow with
every file that it has ever seen.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TypeVar

_Function = TypeVar("_Function", bound=Callable[..., object])
_CLEARING: list[Callable[[], None]] = []


def remembered(function: _Function) -> _Function:
    """``function``, whose answers are kept until ``forget()``."""
    kept = cache(function)
    _CLEARING.append(kept.cache_clear)
    return kept  # type: ignore[return-value]


def forget() -> None:
    """Drop every answer: the trees that it is about are no longer wanted."""
    for clear in _CLEARING:
        clear()
