"""Its bad side kills rank 0, and leaves a child of its own behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence

from runtime_checks.context import rank
from runtime_checks.harness import Check, Seen


def bad() -> Seen:
    if rank() == 0:
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", "left-by-dies"])
        os.kill(os.getpid(), signal.SIGSEGV)
    return {}


def good() -> Seen:
    return {}


def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]:
    yield Check("reached", True, "==", True, of="bad")
    yield Check("reached", True, "==", True, of="good")
