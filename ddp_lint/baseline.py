"""The findings that an old repository starts with: recorded once, and only new ones reported.

The file is JSON, made to be committed: for each file and rule a count, and what stays the same
about each finding when lines move (see ``ddp_lint.fingerprint``).  Its paths are relative to the
folder that it lies in, so it means the same wherever the linter is started.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

from ddp_lint.finding import Finding, Place
from ddp_lint.fingerprint import fingerprints
from ddp_lint.settings import SettingsError
from ddp_lint.write import Unwritable, replace_file

_VERSION = 1
_SHOWN = 3

#: Fingerprints by rule by file.
Entries = Mapping[str, Mapping[str, AbstractSet[str]]]


@dataclass(frozen=True)
class Baseline:
    """What is known.  ``folder`` is where its file lies."""

    folder: Path
    entries: Entries = field(default_factory=dict)

    def __len__(self) -> int:
        return sum(len(names) for codes in self.entries.values() for names in codes.values())

    def key(self, path: str, cwd: Path) -> str:
        """The path of a finding as the baseline calls it."""
        return _relative(os.path.join(cwd, path), str(self.folder))

    def new(
        self, findings: Sequence[Finding], source_line: Callable[[Place], str], cwd: Path
    ) -> list[Finding]:
        """The findings that it does not know.  ``cwd`` is what their paths are relative to."""
        return [
            finding
            for finding, (key, name) in zip(
                findings, self._named(findings, source_line, cwd), strict=True
            )
            if name not in self.entries.get(key, {}).get(finding.code, ())
        ]

    def without(
        self,
        findings: Sequence[Finding],
        source_line: Callable[[Place], str],
        cwd: Path,
        seen: Callable[[str, str], bool],
    ) -> Baseline:
        """Its entries that no finding answers to, where ``seen(file, code)`` was looked at."""
        there = set(self._named(findings, source_line, cwd))
        entries: dict[str, dict[str, frozenset[str]]] = {}
        for key, codes in self.entries.items():
            for code, names in codes.items():
                gone = frozenset(name for name in names if (key, name) not in there)
                if gone and seen(key, code):
                    entries.setdefault(key, {})[code] = gone
        return Baseline(self.folder, entries)

    def updated(
        self,
        findings: Sequence[Finding],
        source_line: Callable[[Place], str],
        cwd: Path,
        seen: Callable[[str, str], bool],
    ) -> Baseline:
        """All findings, and the entries about what was not looked at."""
        entries: dict[str, dict[str, set[str]]] = {}
        for key, codes in self.entries.items():
            for code, names in codes.items():
                if not seen(key, code):
                    entries.setdefault(key, {})[code] = set(names)
        named = self._named(findings, source_line, cwd)
        for finding, (key, name) in zip(findings, named, strict=True):
            entries.setdefault(key, {}).setdefault(finding.code, set()).add(name)
        return Baseline(self.folder, entries)

    def spoken(self) -> str:
        """``2 DDP101 in a.py, 1 DDP201 in b.py and more``."""
        parts = [
            f"{len(names)} {code} in {key}"
            for key, codes in sorted(self.entries.items())
            for code, names in sorted(codes.items())
        ]
        return ", ".join(parts[:_SHOWN]) + (" and more" if len(parts) > _SHOWN else "")

    def _named(
        self, findings: Sequence[Finding], source_line: Callable[[Place], str], cwd: Path
    ) -> list[tuple[str, str]]:
        """The key of its file, and the fingerprint, of each finding."""
        path_of: dict[str, str] = {}
        moved = []
        for finding in findings:
            key = self.key(finding.place.path, cwd)
            path_of[key] = finding.place.path
            moved.append(replace(finding, place=replace(finding.place, path=key)))
        names = fingerprints(
            moved, lambda place: source_line(replace(place, path=path_of[place.path]))
        )
        return [(one.place.path, name) for one, name in zip(moved, names, strict=True)]


@lru_cache(maxsize=4096)
def _relative(path: str, folder: str) -> str:
    path = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    with contextlib.suppress(ValueError):  # another drive
        path = os.path.relpath(path, folder)
    return path.replace(os.sep, "/")


def empty_baseline(file: Path) -> Baseline:
    return Baseline(Path(os.path.realpath(file.absolute().parent)))


def read_baseline(file: Path) -> Baseline:
    """Raises ``SettingsError`` where the file is not there or is no baseline."""
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise SettingsError(
            f"--baseline: there is no file {file}; to write it, add --update-baseline"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise SettingsError(f"--baseline: {file} cannot be read: {why}") from None
    try:
        return replace(empty_baseline(file), entries=_entries(json.loads(text)))
    except (ValueError, RecursionError) as error:
        raise SettingsError(
            f"--baseline: {file} is no baseline of ddp-lint: {error}; to write it again, "
            "remove it and add --update-baseline"
        ) from None


def _entries(document: object) -> Entries:
    """Raises ``ValueError``."""
    if not isinstance(document, dict) or not isinstance(document.get("files"), dict):
        raise ValueError("it has no `files`")
    if document.get("version") != _VERSION:
        raise ValueError(f"its version is {document.get('version')!r}, not {_VERSION}")
    entries: dict[str, dict[str, frozenset[str]]] = {}
    for path, codes in document["files"].items():
        if not isinstance(codes, dict):
            raise ValueError(f"{path} has no rules")
        for code, entry in codes.items():
            names = entry.get("fingerprints") if isinstance(entry, dict) else None
            if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
                raise ValueError(f"{path} has no fingerprints for {code}")
            if entry.get("count") != len(set(names)):
                counted = f"{entry.get('count')} {code}, and names {len(set(names))}"
                raise ValueError(f"{path} counts {counted}")
            entries.setdefault(path, {})[code] = frozenset(names)
    return entries


def write_baseline(file: Path, baseline: Baseline) -> None:
    """Sorted, a fingerprint a line, so that version control merges it.  ``SettingsError``."""
    files = {
        path: {
            code: {"count": len(names), "fingerprints": sorted(names)}
            for code, names in sorted(codes.items())
        }
        for path, codes in sorted(baseline.entries.items())
    }
    text = json.dumps({"version": _VERSION, "files": files}, indent=1, ensure_ascii=False)
    try:
        replace_file(file, f"{text}\n".encode("utf-8", "surrogatepass"))
    except Unwritable as error:
        raise SettingsError(f"--update-baseline: {file} {error}") from None


def looked_at(
    baseline: Baseline, linted: Iterable[str], codes: AbstractSet[str], known: AbstractSet[str]
) -> Callable[[str, str], bool]:
    """Whether a run can say that an entry about ``(file, code)`` is stale.

    ``linted`` are the files of the run, as the baseline calls them, ``codes`` the rules that
    ran, ``known`` those that there are.  What was removed meanwhile is stale in any case.
    """
    files = frozenset(linted)

    def seen(key: str, code: str) -> bool:
        if code not in known or not (baseline.folder / key).exists():
            return True
        return key in files and code in codes

    return seen
