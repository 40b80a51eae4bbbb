"""For people: the line with a caret, what happens, the calls that make it so, the mend."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from ddp_lint.finding import LEVELS, Finding, Level, Place
from ddp_lint.report import Run

_WIDEST = 120
_COLOURS = {"error": "1;31", "warning": "1;33", "note": "1;36", "bold": "1", "dim": "2"}


def render(run: Run) -> str:
    paint = _Paint(run.colour)
    blocks = ["\n".join(_finding(run, finding, paint)) + "\n" for finding in run.findings]
    blocks += [_problem(problem.path, problem.line, problem.message) for problem in run.problems]
    if run.problems:
        blocks.append("")
    if run.statistics and run.findings:
        blocks.append("\n".join(_statistics(run)) + "\n")
    return "\n".join((*blocks, _summary(run, paint), ""))


def where(place: Place) -> str:
    """``path:line:column``, both from 1; in a notebook with the cell in between."""
    cell = f"cell {place.cell}:" if place.cell is not None else ""
    return f"{place.path}:{cell}{place.line}:{place.column + 1}"


class _Paint:
    def __init__(self, on: bool) -> None:
        self._on = on

    def __call__(self, text: str, style: str) -> str:
        return f"\033[{_COLOURS[style]}m{text}\033[0m" if self._on and text else text


def _finding(run: Run, finding: Finding, paint: _Paint) -> Iterator[str]:
    place = finding.place
    level = paint(finding.level, finding.level)
    yield f"{paint(where(place), 'bold')}: {finding.code} {level}: {finding.message}"
    number = str(place.line)
    margin = " " * len(number)
    bar = paint("|", "dim")
    shown, caret = _excerpt(run.source_line(place), place)
    if shown:
        yield f"  {paint(number, 'dim')} {bar} {shown}"
        yield f"  {margin} {bar} {paint(caret, finding.level)}"
    for related in finding.related:
        yield f"  {margin} {paint('=', 'dim')} {where(related.place)}: {related.message}"
    if finding.fix is not None:
        option = "--fix" if finding.fix.safe else "--fix --unsafe-fixes"
        yield f"  {margin} {paint('=', 'dim')} fix: {finding.fix.title} ({option})"


def _excerpt(line: str, place: Place) -> tuple[str, str]:
    """The line as shown, and the line of carets below it."""
    start = place.column
    end = place.end_column if place.end_line == place.line else len(line.rstrip())
    indent = min(len(line) - len(line.lstrip()), start)
    cut = max(indent, start - _WIDEST // 2)
    before, marked = line[cut:start], line[start:end]
    shown = line[cut:].rstrip()[:_WIDEST]
    marked = marked[: max(_WIDEST - len(before), 0)]
    pad = "".join("\t" if letter == "\t" else " " * _width(letter) for letter in before)
    caret = pad + "^" * max(sum(map(_width, marked)), 1)
    if cut > indent:
        shown, caret = f"…{shown}", f" {caret}"
    if len(line.rstrip()) - cut > _WIDEST:
        shown += "…"
    return _printable(shown), caret


def _width(letter: str) -> int:
    if unicodedata.combining(letter):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in ("W", "F") else 1


def _printable(text: str) -> str:
    """Control characters of the source must not reach the terminal."""
    return "".join(
        letter if letter == "\t" or letter.isprintable() else "\N{REPLACEMENT CHARACTER}"
        for letter in text
    )


def _problem(path: str, line: int, message: str) -> str:
    return f"{path}:{line}: {message}" if line else f"{path}: {message}"


def _statistics(run: Run) -> Iterator[str]:
    wide = max(len(str(count)) for count in run.by_code.values())
    for code, count in run.by_code.items():
        name = run.rules[code].name if code in run.rules else ""
        yield f"{count:>{wide}}  {code}  {name}".rstrip()


def _summary(run: Run, paint: _Paint) -> str:
    files = plural(run.files, "file")
    if run.findings:
        counts: list[tuple[Level, int]] = [
            (level, run.by_level[level]) for level in reversed(LEVELS) if run.by_level.get(level)
        ]
        found = ", ".join(paint(plural(count, level), level) for level, count in counts)
        code = run.findings[0].code
        text = f"{found} in {files}; `ddp-lint explain {code}` says why and what to do."
    else:
        text = f"No findings in {files}."
    if run.suppressed:
        text += f" {plural(run.suppressed, 'finding')} suppressed by noqa."
    if run.problems:
        text += f" {plural(len(run.problems), 'problem')}: see above."
    return text


def plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
