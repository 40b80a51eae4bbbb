"""Which files are no Python at all: said of every file that was to be linted.

The engine parses only files that can matter, and so would pass over a broken one without a word.
Where there are many files another process looks at them meanwhile.
"""

from __future__ import annotations

import gc
import os
import pickle
import symtable
import warnings
from collections.abc import Sequence

from ddp_lint.finding import Problem
from ddp_lint.model.tree import Unparsable, parse
from ddp_lint.sources import SourceFile, Unreadable

#: With fewer files a process costs more than it brings.
WORTH_A_PROCESS = 100


class SyntaxCheck:
    """Begins when it is made; ``problems`` waits for the end."""

    def __init__(self, files: Sequence[SourceFile]) -> None:
        self._files = files
        self._answer: tuple[int, int] | None = None
        if len(files) >= WORTH_A_PROCESS and hasattr(os, "fork") and (os.cpu_count() or 1) > 1:
            self._answer = _in_another_process(files)

    def problems(self) -> list[Problem]:
        """One problem for each file that cannot be read or parsed."""
        if self._answer is not None:
            pid, pipe = self._answer
            with open(pipe, "rb") as file:
                answer = file.read()
            os.waitpid(pid, 0)
            if answer:
                return [Problem(*fields) for fields in pickle.loads(answer)]
        return check_syntax(self._files)


def check_syntax(files: Sequence[SourceFile]) -> list[Problem]:
    """One problem for each file that cannot be read or parsed, found here and now."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [problem for file in files if (problem := _problem(file)) is not None]


def _in_another_process(files: Sequence[SourceFile]) -> tuple[int, int]:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        return pid, reading
    status = 1
    try:
        os.close(reading)
        gc.disable()
        found = [(one.path, one.line, one.message) for one in check_syntax(files)]
        with open(writing, "wb") as pipe:
            pickle.dump(found, pipe)
        status = 0
    finally:
        os._exit(status)  # without running what the parent has registered for its own end


def _problem(file: SourceFile) -> Problem | None:
    try:
        text = file.text
    except Unreadable as error:
        return Problem(file.name, error.line, str(error))
    try:
        # Quicker than a tree, but it also minds what only the compiler minds.
        symtable.symtable(text, file.name, "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        try:
            parse(text, file.name)
        except Unparsable as error:
            return Problem(file.name, error.line, str(error))
    return None
