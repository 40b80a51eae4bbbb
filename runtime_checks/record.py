"""The experiment record: one JSON file per run, from which table, page and comparison come.

Two runs of one suite on one machine agree in everything but ``observed`` and ``seconds``.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .proofs import Proof
from .worker import Outcome

SCHEMA = 1
Record = dict[str, Any]
#: What a proof can come to.  "failed": it raised, died or hung, which proves nothing.
STATUSES = ("proven", "disproved", "not_run", "failed")
#: Keys whose values differ from run to run.
FLEETING = frozenset({"observed", "seconds"})


def entry(proof: Proof, outcomes: Sequence[Outcome]) -> Record:
    """What one proof came to, from how it ended on each rank."""
    status, reason = _verdict(outcomes)
    result = outcomes[0].result
    seen: Mapping[str, list[dict[str, Any]]] = result.get("seen", {})
    return {
        "rule": proof.code or None,
        "proof": proof.stem,
        "summary": proof.summary,
        "status": status,
        "reason": reason,
        "simulated": result.get("simulated", ""),
        "settings": result.get("settings", {}),
        "checks": result.get("checks", []),
        "seen": {side: [_rest(one) for one in ranks] for side, ranks in seen.items()},
        "digests": {
            side: [one.get("digests", {}) for one in ranks] for side, ranks in seen.items()
        },
        "picture": result.get("picture"),
        "not_covered": result.get("not_covered", []),
        "observed": {
            side: [one.get("observed", {}) for one in ranks] for side, ranks in seen.items()
        },
        "seconds": result.get("seconds", {}),
    }


def _rest(seen: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in seen.items() if key not in ("observed", "digests")}


def _verdict(outcomes: Sequence[Outcome]) -> tuple[str, str]:
    statuses = {outcome.status for outcome in outcomes}
    if statuses == {"done"}:
        broken = [check for check in outcomes[0].result["checks"] if not check["ok"]]
        if not broken:
            return "proven", ""
        return "disproved", "; ".join(_in_words(check) for check in broken)
    if statuses == {"not_run"}:
        return "not_run", outcomes[0].detail
    ends: dict[str, list[str]] = {}
    for rank, outcome in enumerate(outcomes):
        if outcome.status == "raised":
            ends.setdefault(f"raised {outcome.detail}", []).append(str(rank))
        elif outcome.status in ("died", "hung"):
            ends.setdefault(f"{outcome.status}: {outcome.detail}", []).append(str(rank))
    told = [f"rank {', '.join(ranks)} {end}" for end, ranks in ends.items()]
    return "failed", "; ".join(told)


def _in_words(check: Mapping[str, Any]) -> str:
    values = [round_for_people(value) for value in check["values"]]
    limits = [round_for_people(limit) for limit in check["limits"]]
    once = len(set(values)) == 1 and len(set(limits)) == 1
    is_that = [
        f"{value} {check['op']} {limit}" for value, limit in zip(values, limits, strict=True)
    ]
    told = is_that[0] if once else ", ".join(f"{t} (rank {r})" for r, t in enumerate(is_that))
    return f"{check['of']}: {check['name']}: not {told}"


def round_for_people(value: Any, most: int = 40) -> str:
    """A value as the table and the page show it."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "-"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.4g}"
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= most else text[: most - 1] + "…"


def summary(entries: Sequence[Record]) -> dict[str, int]:
    return {status: sum(one["status"] == status for one in entries) for status in STATUSES}


def exit_code(entries: Sequence[Record]) -> int:
    """0: everything that ran was proven; 1: something was disproved; 2: something could not run.

    A proof whose needs are not met is no failure, unless nothing ran at all.
    """
    counts = summary(entries)
    if counts["disproved"]:
        return 1
    if counts["failed"] or not counts["proven"]:
        return 2
    return 0


def dumps(record: Record) -> str:
    """As JSON that every parser takes: what is not a finite number becomes a string."""
    return json.dumps(_finite(record), indent=1, allow_nan=False) + "\n"


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(inner) for inner in value]
    return value


def write(path: Path, text: str) -> None:
    """Write a file so that a reader sees the old text or the new one, never half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)


def lasting(record: Any) -> Any:
    """A record without what differs from run to run."""
    if isinstance(record, Mapping):
        return {key: lasting(value) for key, value in record.items() if key not in FLEETING}
    if isinstance(record, list):
        return [lasting(value) for value in record]
    return record
