"""Write ``# noqa`` comments for findings, and find the ones that have nothing left to suppress.

A comment goes where flake8 reads it too: at the end of the line that a finding is on, which for
lines joined by a backslash or by a string of several lines is the last of them.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ddp_lint.edits import Change, Lines, Plan
from ddp_lint.finding import Finding, Place, Problem
from ddp_lint.fix import FixedFile
from ddp_lint.noqa import Directive, Noqa
from ddp_lint.notebook import rewrite
from ddp_lint.settings import SettingsError
from ddp_lint.sources import SourceFile
from ddp_lint.write import Unwritable, write

_LAYOUT = frozenset({tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER, tokenize.ENCODING})
_CODE = re.compile(r"[,\s]*[A-Z]+\d", re.I)
_OURS = re.compile(r"DDP\d+", re.I)


@dataclass(frozen=True)
class Silenced:
    """What ``silence`` did: the findings that are silent now, and what was not done and why."""

    findings: tuple[Finding, ...]
    files: int
    problems: tuple[Problem, ...]


def checked_reason(reason: str) -> str:
    """The reason as it stands after the codes.  Raises ``SettingsError``."""
    reason = reason.strip()
    if not reason.isprintable():
        raise SettingsError(f"--add-noqa: the reason must be one line of text, not {reason!r}")
    return reason


def silence(
    findings: Iterable[Finding], sources: Mapping[str, SourceFile], reason: str = ""
) -> Silenced:
    """Write a comment for each finding; ``sources`` are by the name that findings use."""
    by_file: dict[str, list[Finding]] = {}
    for finding in findings:
        by_file.setdefault(finding.place.path, []).append(finding)
    done: list[Finding] = []
    problems: list[Problem] = []
    files = 0
    for name, found in by_file.items():
        source = sources[name]
        after = with_comments(source, found, reason)
        quiet = [finding for finding in found if _is_silent(source, after, finding)]
        for finding in found:
            if finding not in quiet:
                message = f"{finding.code} was not silenced: no comment can stand there"
                problems.append(Problem(name, finding.place.line, message))
        if not quiet:
            continue
        try:
            write(FixedFile(source, after))
        except Unwritable as error:
            problems.append(Problem(name, 0, f"was left as it is: it {error}"))
            continue
        done += quiet
        files += 1
    return Silenced(tuple(done), files, tuple(problems))


def with_comments(source: SourceFile, findings: Sequence[Finding], reason: str = "") -> str:
    """The whole text of the file with a comment for each finding where one can stand."""
    codes: dict[tuple[int | None, int], set[str]] = {}
    lasts = _last_lines(source.text)
    for finding in findings:
        cell = finding.place.cell
        start = _start(source, finding.place)
        line = finding.place.line + start
        codes.setdefault((cell, lasts.get(line, line)), set()).add(finding.code)
    directives = {one.line: one for one in Noqa(source).directives}
    plans: dict[int | None, Plan] = {}
    for (cell, line), wanted in codes.items():
        written = source.whole_text
        start = 0
        if source.notebook is not None and cell is not None:
            written, start = source.notebook.written_cell(cell), source.notebook.start_of(cell)
        plan = plans.setdefault(cell, Plan(Lines(written)))
        masked = source.lines[line - 1]
        begin = plan.lines.offset(line - start, 0)
        if not written.startswith(masked, begin):
            continue  # IPython's own syntax: a comment there would be part of a command
        change = _change(masked, directives.get(line), sorted(wanted), reason)
        plan.changes.add(Change(begin + change.start, begin + change.end, change.new))
    if source.notebook is None:
        return plans[None].result()
    return rewrite(
        source.whole_text,
        {cell: plan.result() for cell, plan in plans.items() if cell is not None},
    )


def _change(line: str, directive: Directive | None, codes: list[str], reason: str) -> Change:
    """The change to one line: codes into the comment that is there, or a comment of its own."""
    bare = len(line.rstrip())
    if directive is None or not directive.codes:
        words = f"  # noqa: {', '.join(codes)}"
        return Change(bare, len(line), words + _after(reason))
    at = line.index(directive.text, directive.column) + len(directive.text)
    rest = line[at:bare]
    if reason and reason not in rest:
        rest = f"{rest}; {reason}" if rest else _after(reason)
    return Change(at, len(line), f", {', '.join(codes)}{rest}")


def _after(reason: str) -> str:
    """The reason after codes; one that begins like a code must not be read as one."""
    if not reason:
        return ""
    return f" - {reason}" if _CODE.match(reason) else f" {reason}"


def _start(source: SourceFile, place: Place) -> int:
    """How many lines of the source as one text stand before the text that ``place`` counts in."""
    if source.notebook is None or place.cell is None:
        return 0
    return source.notebook.start_of(place.cell)


def _last_lines(text: str) -> dict[int, int]:
    """For each line the last of those that are one line to flake8.

    Where the text cannot be read to its end, as with IPython's syntax, a line is a line.
    """
    lasts: dict[int, int] = {}
    first = 0
    try:
        for token in tokenize.generate_tokens(io.StringIO(text, newline="").readline):
            if token.type in _LAYOUT:
                continue
            first = first or token.start[0]
            if token.type in (tokenize.NL, tokenize.NEWLINE):
                lasts.update(dict.fromkeys(range(first, token.end[0] + 1), token.start[0]))
                first = 0
    except (tokenize.TokenError, SyntaxError):
        return lasts
    return lasts


def _is_silent(source: SourceFile, after: str, finding: Finding) -> bool:
    silent = Noqa(SourceFile(source.path, source.name, after))
    return silent.find(finding.place, finding.code) is not None


@dataclass(frozen=True)
class Unused:
    """Codes of one comment that suppress nothing.  ``line`` counts in ``cell`` if there is one."""

    path: str
    cell: int | None
    line: int
    column: int
    codes: tuple[str, ...]


def unused(
    source: SourceFile,
    findings: Iterable[Finding],
    known: Collection[str],
    judged: Collection[str],
) -> list[Unused]:
    """The comments in a file with codes of ours that suppress none of ``findings``.

    ``findings`` are all of the file, those too that a comment suppresses.  ``known`` are the
    codes of all rules and ``judged`` of those that were asked about this file: a code for a rule
    that did not run may be needed when it does.  Raises ``Unreadable``.
    """
    places = [(_start(source, one.place) + one.place.line, one.code) for one in findings]
    found = []
    for directive in Noqa(source).directives:
        codes = tuple(
            code
            for code in directive.codes or ()
            if _OURS.fullmatch(code)
            and all(one in judged for one in known if one.startswith(code))
            and not any(
                replace(directive, codes=(code,)).suppresses(line, other) for line, other in places
            )
        )
        if codes:
            cell, start = None, 0
            if source.notebook is not None:
                cell, start = source.notebook.locate(directive.line)
            found.append(
                Unused(source.name, cell, directive.line - start, directive.column, codes)
            )
    return found
