"""It prints, draws random numbers and lets times differ; two runs still agree."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence

import torch

from runtime_checks.context import rank, scratch
from runtime_checks.harness import Check, Seen
from runtime_checks.pictures import Lines
from runtime_checks.probes import digest


def draw() -> Seen:
    print("a line that belongs into the log")
    drawn = torch.rand(3)
    (scratch() / f"rank{rank()}").write_text("here")
    return {
        "first": drawn[0].item(),
        "infinite": float("inf"),
        "digests": {"drawn": digest(drawn)},
        "observed": {"clock": time.time(), "process": os.getpid()},
    }


def bad() -> Seen:
    return draw()


def good() -> Seen:
    return draw()


def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]:
    yield Check("first number", bad[0]["first"], "==", good[0]["first"], of="bad")
    yield Check("first number", good[0]["first"], "==", good[-1]["first"], of="good")


def picture(bad: Sequence[Seen], good: Sequence[Seen]) -> Lines:
    return Lines("nothing", "x", "y", range(2), {"bad": [bad[0]["first"]] * 2, "good": (0.5, 1)})
