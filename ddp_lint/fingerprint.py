"""What stays the same about a finding when lines move: used by the baseline and by CI formats."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable

from ddp_lint.finding import Finding, Place

#: Line and cell numbers in a message: "at engine.py:58", "line 7", "cell 3".
_NUMBERS = re.compile(r"(?<=[\w)]:)\d+(?::\d+)?|(?<=\bline )\d+|(?<=\blines )\d+|(?<=\bcell )\d+")


def steady_message(message: str) -> str:
    """The message with each line and cell number written as ``N``."""
    return _NUMBERS.sub("N", message)


def steady_line(line: str) -> str:
    """The line of source without indentation and with every run of blanks as one."""
    return " ".join(line.split())


def fingerprints(findings: Iterable[Finding], source_line: Callable[[Place], str]) -> list[str]:
    """A hexadecimal name for each finding, in order.

    No two are equal: of findings that nothing tells apart, the n-th in the file gets the n-th.
    """
    seen: Counter[tuple[str, ...]] = Counter()
    names = []
    for finding in findings:
        key = (
            finding.place.path,
            finding.code,
            steady_message(finding.message),
            steady_line(source_line(finding.place)),
        )
        text = "\0".join((*key, str(seen[key])))
        names.append(hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:40])
        seen[key] += 1
    return names
