"""The table at the end of a run: rule, what was measured, bad, good, verdict."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TextIO

from .progress import coloured
from .record import Record, round_for_people


@dataclass(frozen=True)
class Headline:
    """The one measurement of a proof that a row has room for, as text."""

    measured: str
    bad: str
    good: str


def headline(entry: Record) -> Headline:
    """The first check that both sides have under one name; else the first one of each."""
    of = {side: [c for c in entry["checks"] if c["of"] == side] for side in ("bad", "good")}
    bad = {check["name"]: check for check in reversed(of["bad"])}
    for check in of["good"]:
        if check["name"] in bad:
            return Headline(check["name"], values(bad[check["name"]]), values(check))
    first = {side: checks[0] if checks else None for side, checks in of.items()}
    names = dict.fromkeys(check["name"] for check in first.values() if check)
    return Headline(
        " / ".join(names),
        *(values(check) if check else "" for check in (first["bad"], first["good"])),
    )


def values(check: dict[str, Any]) -> str:
    """What the ranks measured: once where they agree, else by rank."""
    shown = [round_for_people(value, most=16) for value in check["values"]]
    return shown[0] if len(set(shown)) == 1 else " | ".join(shown)


def write(entries: Sequence[Record], stream: TextIO) -> None:
    """Write the table, as wide as the terminal allows."""
    rows = [("rule", "proof", "measured", "bad", "good", "verdict")]
    for entry in entries:
        line = headline(entry)
        verdict = entry["status"]
        measured = line.measured or entry["reason"]
        rows.append((entry["rule"] or "", entry["proof"], measured, line.bad, line.good, verdict))
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    room = shutil.get_terminal_size((120, 40)).columns
    over = sum(widths) + 2 * len(widths) + len("not run") - room
    widths[2] = max(12, widths[2] - max(0, over))
    for number, row in enumerate(rows):
        cells = [_cut(cell, width).ljust(width) for cell, width in zip(row, widths, strict=False)]
        verdict = row[5] if number == 0 else coloured(row[5], stream)
        simulated = number > 0 and entries[number - 1]["simulated"]
        print("  ".join(cells), verdict + (" on a model" if simulated else ""), file=stream)
    for entry in entries:
        if entry["status"] in ("disproved", "failed", "not_run"):
            see = f" (see logs/{entry['proof']}.rank*.txt)" if entry["status"] == "failed" else ""
            print(
                f"{entry['rule'] or 'loop'} {entry['proof']}: {entry['reason']}{see}", file=stream
            )


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
