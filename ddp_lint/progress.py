"""A line on the terminal that says that a long run is still at work."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType

_SILENT_FOR = 1.0


class Progress:
    """Shows the number of files and the seconds so far, on stderr, once a run takes long.

    Nothing is shown where stderr is no terminal, and nothing is left of it afterwards.
    """

    def __init__(self) -> None:
        self._done = threading.Event()
        self._thread: threading.Thread | None = None
        self._shown = False

    def start(self, files: int) -> None:
        if sys.stderr.isatty():
            self._thread = threading.Thread(target=self._show, args=(files,), daemon=True)
            self._thread.start()

    def _show(self, files: int) -> None:
        began = time.monotonic()
        wait = _SILENT_FOR
        while not self._done.wait(wait):
            seconds = time.monotonic() - began
            sys.stderr.write(f"\r\033[Kddp-lint: linting {files:,} files, {seconds:.0f} s")
            sys.stderr.flush()
            self._shown = True
            wait = 0.5

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._done.set()
        if self._thread is not None:
            self._thread.join()
            if self._shown:
                sys.stderr.write("\r\033[K")
                sys.stderr.flush()
