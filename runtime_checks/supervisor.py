"""One per rank: starts a process for each proof, watches it, and keeps step with the other ranks.

A proof that hangs, dies or raises on one rank is stopped on all of them, and the next one
starts in fresh processes.  This process computes nothing and owns no process group, so there is
nothing that a proof could break here.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import asdict
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from . import worker
from .worker import Outcome, Task
from .world import START, Meeting

_GLANCE = 0.1  # seconds between two looks at the other ranks
_running: list[BaseProcess] = []


def warm_up() -> None:
    """Import what torch itself imports late, once here instead of in each forked process."""
    import torch._dynamo
    import torch.nn.parallel
    import torch.utils._python_dispatch
    import torch.utils.data.distributed  # noqa: F401


def run(task: Task, meeting: Meeting) -> list[Outcome]:
    """Run one proof on this rank; how it ended on every rank, the same list on all of them."""
    receiver, sender = START.Pipe(duplex=False)
    process = START.Process(target=worker.main, args=(task, sender))
    with _started(process):
        sender.close()
        outcome = _watch(process, receiver, task, meeting)
    return [Outcome(**each) for each in meeting.gather(asdict(outcome))]


def _watch(process: BaseProcess, receiver: Connection, task: Task, meeting: Meeting) -> Outcome:
    stop = f"stop/{task.number}"
    deadline = time.monotonic() + task.timeout
    while True:
        ready = wait([receiver, process.sentinel], timeout=_GLANCE)
        if receiver in ready:
            outcome = _received(receiver, process)
            if outcome.status not in ("done", "not_run"):
                meeting.say(stop)
            return outcome
        if process.sentinel in ready:
            meeting.say(stop)
            return _death(process)
        if meeting.heard(stop):
            _kill(process)
            return Outcome("stopped")
        if time.monotonic() > deadline:
            _kill(process)
            meeting.say(stop)
            return Outcome("hung", f"no end after {task.timeout:g} s")


def _received(receiver: Connection, process: BaseProcess) -> Outcome:
    try:
        outcome: Outcome = receiver.recv()
    except EOFError:
        process.join()
        return _death(process)
    return outcome


def _death(process: BaseProcess) -> Outcome:
    process.join()
    code = process.exitcode or 0
    if code < 0:
        return Outcome("died", f"killed by {signal.Signals(-code).name}")
    return Outcome("died", f"left with exit code {code}")


@contextlib.contextmanager
def _started(process: BaseProcess) -> Iterator[None]:
    process.start()
    _running.append(process)
    try:
        yield
    finally:
        _end(process)
        _running.remove(process)


def _end(process: BaseProcess) -> None:
    """Let a worker go that has answered, and leave nothing behind of what it started."""
    process.join(timeout=1.0)
    _kill(process)
    process.join()


def _kill(process: BaseProcess) -> None:
    if process.pid is not None and hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    if process.is_alive():
        process.kill()


def stop_on_signals() -> None:
    """Make Ctrl-C and torchrun's SIGTERM end this rank and its worker at once."""

    def stop(number: int, _frame: object) -> None:
        for process in _running:
            _kill(process)
        raise SystemExit(128 + number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
