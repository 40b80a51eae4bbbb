"""The progress line: on a terminal only, and gone in the end."""

from __future__ import annotations

import io
import sys
import threading

import pytest

from ddp_lint import progress


class Terminal(io.StringIO):
    """Tells when something is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = threading.Event()

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.written.set()
        return super().write(text)


def test_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "_SILENT_FOR", 0.0)
    with progress.Progress() as line:
        line.start(2912)
        assert terminal.written.wait(30)
    assert terminal.getvalue().startswith("\r\033[Kddp-lint: linting 2,912 files, ")
    assert terminal.getvalue().endswith("\r\033[K")


def test_a_short_run_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "_SILENT_FOR", 600.0)
    with progress.Progress() as line:
        line.start(2)
    assert terminal.getvalue() == ""


def test_not_into_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "_SILENT_FOR", 0.0)
    with progress.Progress() as line:
        line.start(2912)
    assert stream.getvalue() == ""
