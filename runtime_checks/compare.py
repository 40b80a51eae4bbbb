"""``python -m runtime_checks.compare A.json B.json``: where two runs part.

Names the first digest that differs (a batch, an order, a parameter), then every other value that
does.  Times and what else varies from run to run are left out.  0: the same; 1: different;
2: a file that is no record.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

MOST = 20  # differences that are listed one by one
#: As in record.py, which needs torch; two records can be compared without.
FLEETING = ("observed", "seconds")


def first_digest(a: Mapping[str, Any], b: Mapping[str, Any]) -> str:
    """The first digest in which two records differ, in words; "" where there is none."""
    theirs = {proof["proof"]: proof for proof in b["proofs"]}
    for proof in a["proofs"]:
        other = theirs.get(proof["proof"])
        if other is None:
            continue
        for side, ranks in proof["digests"].items():
            pairs = list(zip(ranks, other["digests"].get(side, []), strict=False))
            # Name by name, as the names come in the order in which things came about.
            for name in dict.fromkeys(name for mine, _ in pairs for name in mine):
                for rank, (mine, its) in enumerate(pairs):
                    if mine.get(name) != its.get(name):
                        told = f"{mine.get(name, 'absent')}, {its.get(name, 'absent')}"
                        return f"{proof['proof']}, {side}, rank {rank}: {name} ({told})"
    return ""


def differences(a: Any, b: Any, path: str = "") -> Iterator[str]:
    """Every place in which two records differ, as ``path: a, b``; what is fleeting is left out."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        for key in [*a, *(key for key in b if key not in a)]:
            inner = f"{path}.{key}" if path else key
            if key in FLEETING:
                continue
            if key in a and key in b:
                yield from differences(a[key], b[key], inner)
            else:
                yield f"{inner}: only in the {'first' if key in a else 'second'}"
    elif isinstance(a, list) and isinstance(b, list):
        a_by, b_by = _by_name(a), _by_name(b)
        if a_by is not None and b_by is not None:
            yield from differences(a_by, b_by, path)
        elif len(a) != len(b):
            yield f"{path}: {len(a)} and {len(b)} of them"
        else:
            for place, (mine, its) in enumerate(zip(a, b, strict=True)):
                yield from differences(mine, its, f"{path}[{place}]")
    elif a != b or type(a) is not type(b):
        yield f"{path}: {_short(a)}, {_short(b)}"


def _by_name(items: list[Any]) -> dict[str, Any] | None:
    """Proofs by their names, so that one more in the middle does not shift the others."""
    if items and all(isinstance(item, Mapping) and "proof" in item for item in items):
        return {item["proof"]: item for item in items}
    return None


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else text[:39] + "…"


def main(argv: list[str]) -> int:
    if len(argv) != 2:
        print((__doc__ or "").strip(), file=sys.stderr)
        return 2
    records = []
    for name in argv:
        try:
            records.append(json.loads(Path(name).read_text(encoding="utf-8")))
            records[-1]["proofs"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            print(f"{name}: no record of a run: {error}", file=sys.stderr)
            return 2
    a, b = records
    found = list(differences(a, b))
    if not found:
        print("the same but for times")
        return 0
    first = first_digest(a, b)
    print(f"first to differ: {first}" if first else "no digest differs")
    for line in found[:MOST]:
        print(f"  {line}")
    if len(found) > MOST:
        print(f"  and {len(found) - MOST} more")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
