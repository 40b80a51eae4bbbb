"""The record as one HTML page."""

from __future__ import annotations

from .record import Record


def render(written: Record) -> str:
    return f"<pre>{written['summary']}</pre>"
