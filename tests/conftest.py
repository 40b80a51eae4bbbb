"""What several test files share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests import fake_engine

collect_ignore = ["cases", "projects"]  # programs to lint, whatever they are called


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine of ``fake_engine`` in place of the real one."""
    fake_engine.use(monkeypatch)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project, which is also the current folder."""
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name in ("NO_COLOR", "TERM")]:
        monkeypatch.delenv(name)
    return tmp_path
