"""What a proof is written with.

A proof is a file of this folder that has the name of its rule and three functions:

    def bad() -> Seen        # the code that the linter flags; flagged lines end in `# DDP201`
    def good() -> Seen       # the mended code: no marker, no finding
    def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]

``bad`` and ``good`` run on every rank, with the default process group up and everything seeded;
what they return is gathered, and ``evidence`` judges it, on every rank with the same data: what
rank 0 saw stands first.  All of a proof happens in processes of its own, one per rank, so that
it may leave behind what it likes.  What a proof can ask about its surroundings is in
``context.py``; what it can watch itself with is in ``probes.py``.

A proof may also have

    NEEDS = needs(ranks=2)              # where they are unmet it is not run, and says why
    SETTINGS = {"batch": [16, 32]}      # what the numbers hold for: shapes, dtype, optimizer
    SIMULATED = "two threads stand for two streams"     # shown on a model, and says so
    NOT_COVERED = ("optimizers other than SGD",)        # what its numbers do not tell
    def picture(bad, good) -> Picture   # see pictures.py

Two keys of ``Seen`` are set apart.  ``observed`` holds what varies from run to run (seconds,
images per second); it is recorded and never judged.  ``digests`` maps names to digests of
tensors or index orders, in the order in which they came about; ``compare`` names the first one
in which two runs differ.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Json: TypeAlias = Any
#: What one rank saw in one of the two functions.
Seen: TypeAlias = dict[str, Json]
Side: TypeAlias = Literal["bad", "good"]
Op: TypeAlias = Literal["==", "!=", "<", "<=", ">", ">=", "close"]

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True)
class Check:
    """One number and what it has to be; ``of`` says which side it is about.

    Give the checks of ``bad`` and ``good`` that are about the same thing the same ``name``: they
    stand side by side in the table, and the first such name is the proof's headline.  ``close``
    takes ``limit`` as the expected number and holds within ``rel`` of it, or within ``abs``.
    """

    name: str
    value: Json
    op: Op
    limit: Json
    of: Side
    rel: float = 1e-3
    abs: float = 0.0

    @property
    def ok(self) -> bool:
        if self.op == "close":
            return math.isclose(self.value, self.limit, rel_tol=self.rel, abs_tol=self.abs)
        return bool(_COMPARE[self.op](self.value, self.limit))


@dataclass(frozen=True)
class Needs:
    """What a proof cannot do without.

    ``ranks`` is the smallest world, ``cuda`` a GPU, ``gpu_per_rank`` one for every rank (NCCL),
    ``modules`` what must be importable, ``torch`` the oldest version that will do,
    ``shared_folder`` one ``scratch()`` for all ranks.
    """

    ranks: int = 1
    cuda: bool = False
    gpu_per_rank: bool = False
    modules: Sequence[str] = ()
    torch: str = ""
    shared_folder: bool = False


def needs(
    *,
    ranks: int = 1,
    cuda: bool = False,
    gpu_per_rank: bool = False,
    modules: Sequence[str] = (),
    torch: str = "",
    shared_folder: bool = False,
) -> Needs:
    """Declare what a proof cannot do without; where it is missing the proof is not run.

    It is read before the proof is imported, so that the proof may import what it needs at its
    top: every argument has to be a literal.
    """
    return Needs(ranks, cuda, gpu_per_rank, tuple(modules), torch, shared_folder)
