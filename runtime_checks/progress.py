"""One line that says what is running: rewritten on a terminal, appended elsewhere."""

from __future__ import annotations

import os
import shutil
import sys
from typing import TextIO

from .proofs import Proof
from .record import Record

_COLOURS = {"proven": "32", "disproved": "31", "failed": "35", "not_run": "33"}


def coloured(status: str, stream: TextIO) -> str:
    """A status as people read it, in its colour where the stream shows colours."""
    word = status.replace("_", " ")
    if not stream.isatty() or os.environ.get("NO_COLOR"):
        return word
    return f"\x1b[{_COLOURS[status]}m{word}\x1b[0m"


class Progress:
    """Rank 0's word on how far the run is; on stderr, so that stdout stays the table's."""

    def __init__(self, total: int, stream: TextIO | None = None) -> None:
        self._total = total
        self._number = 0
        self._stream = stream or sys.stderr
        self._live = self._stream.isatty()

    def start(self, proof: Proof) -> None:
        self._number += 1
        if self._live:
            line = f"{self._where()} {proof.code or 'loop'} {proof.stem} ..."
            self._rewrite(line[: shutil.get_terminal_size().columns - 1])

    def done(self, entry: Record) -> None:
        """Say how a proof ended.  On a terminal only what is not as it should be stays."""
        if self._live and entry["status"] in ("proven", "not_run"):
            return
        if self._live:
            self._rewrite("")
        status = coloured(entry["status"], self._stream)
        told = f"{self._where()} {entry['rule'] or 'loop'} {entry['proof']}: {status}"
        if entry["reason"]:
            told += f" ({entry['reason']})"
        print(told, file=self._stream, flush=True)

    def end(self) -> None:
        if self._live:
            self._rewrite("")

    def _where(self) -> str:
        width = len(str(self._total))
        return f"[{self._number:{width}}/{self._total}]"

    def _rewrite(self, line: str) -> None:
        print(f"\r\x1b[K{line}", end="", file=self._stream, flush=True)
