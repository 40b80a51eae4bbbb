"""One HTML page that needs nothing else: no network, no server, no other file.

Findings by file or by rule, each with its source and the page of its rule.  Everything that comes
from the linted project is escaped, and the page allows no script but its own.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator
from html import escape

from ddp_lint import __version__
from ddp_lint.finding import LEVELS, Finding, Level, Place
from ddp_lint.fingerprint import fingerprints
from ddp_lint.report import Run
from ddp_lint.report._html_page import SCRIPT, STYLE
from ddp_lint.report._markdown import code_only, to_html
from ddp_lint.report._places import spoken
from ddp_lint.sources import SourceFile, Unreadable

#: Lines of source shown before and after a place, and at most for the place itself.
_AROUND = 3
_MOST = 12


def render(run: Run) -> str:
    """The page."""
    return "\n".join(_page(run))


def _page(run: Run) -> Iterator[str]:
    script = b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{script}'"
    yield '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>ddp-lint: {escape(_total(run))}</title>\n<style>{STYLE}</style>\n</head>"
    yield '<body>\n<div class="page">'
    yield from _sidebar(run)
    yield "<main>"
    yield from _problems(run)
    yield '<p id="nothing" class="soft" hidden>No finding matches. <kbd>Esc</kbd> shows all.</p>'
    if not run.findings:
        yield f"<p>No findings in {_count(run.files, 'file')}.</p>"
    yield '<div id="findings">'
    names = fingerprints(run.findings, run.source_line)
    for finding, name in zip(run.findings, names, strict=True):
        yield from _finding(run, finding, name)
    yield "</div>"
    yield from _rules(run)
    yield f"</main>\n</div>\n<script>{SCRIPT}</script>\n</body>\n</html>\n"


def _total(run: Run) -> str:
    return f"{_count(len(run.findings), 'finding')} in {_count(run.files, 'file')}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _sidebar(run: Run) -> Iterator[str]:
    levels = Counter(finding.level for finding in run.findings)
    rules = Counter(finding.code for finding in run.findings)
    files = Counter(finding.place.path for finding in run.findings)
    yield '<aside>\n<div class="top"><h1>ddp-lint</h1>'
    yield '<button id="theme" class="plain needs-script" title="Light or dark">Light/dark</button>'
    yield f'</div>\n<p class="soft">{_total(run)}, version {escape(__version__)}</p>'
    yield '<div class="needs-script">'
    yield '<input id="search" type="search" placeholder="Search: code, file, words"'
    yield ' aria-label="Search findings" autocomplete="off" spellcheck="false">'
    yield '<div class="row">'
    for level in reversed(LEVELS):
        if levels[level]:
            yield _chooser("level", level, _count(levels[level], level), "plain")
    yield '<button id="group" class="plain">Group by rule</button></div>'
    yield '<p id="count" class="soft" aria-live="polite"></p>'
    yield '<p class="keys soft"><kbd>/</kbd> search <kbd>j</kbd> <kbd>k</kbd> next, previous'
    yield " <kbd>Enter</kbd> open <kbd>g</kbd> group <kbd>Esc</kbd> show all</p>"
    yield '<details class="fold" open><summary>Rules and files</summary>'
    yield '<h2>Rules</h2>\n<ul class="index">'
    for code, number in sorted(rules.items()):
        yield f"<li>{_chooser('rule', code, _title(run, code), '', number)}</li>"
    yield '</ul>\n<h2>Files</h2>\n<ul class="index">'
    for path, number in sorted(files.items()):
        yield f"<li>{_chooser('file', path, path, '', number)}</li>"
    yield "</ul></details></div>\n</aside>"


def _chooser(key: str, value: str, text: str, style: str, number: int | None = None) -> str:
    tail = "" if number is None else f'<span class="soft">{number}</span>'
    return (
        f'<button class="{style}" data-choose="{key}" data-value="{escape(value)}"'
        f' aria-pressed="false"><span>{escape(text)}</span>{tail}</button>'
    )


def _title(run: Run, code: str) -> str:
    return f"{code} {run.rules[code].name}" if code in run.rules else code


def _problems(run: Run) -> Iterator[str]:
    if not run.problems:
        return
    number = _count(len(run.problems), "file")
    yield f'<section class="problems"><strong>Not linted: {number}</strong>'
    yield "<ul>"
    for problem in run.problems:
        where = f"{problem.path}:{problem.line}" if problem.line else problem.path
        yield f"<li><code>{escape(where)}</code> {escape(problem.message)}</li>"
    yield "</ul></section>"


def _finding(run: Run, finding: Finding, name: str) -> Iterator[str]:
    title = _title(run, finding.code)
    place = spoken(finding.place)
    text = " ".join((title, place, finding.level, finding.message)).lower()
    yield (
        f'<article class="finding {_class(finding.level)}" id="f-{name[:12]}"'
        f' data-level="{_class(finding.level)}" data-rule="{escape(finding.code)}"'
        f' data-rule-title="{escape(title)}" data-file="{escape(finding.place.path)}"'
        f' data-text="{escape(text)}">'
    )
    yield '<details><summary><div class="head">'
    yield f'<span class="badge">{_class(finding.level)}</span>'
    yield f"<strong>{escape(title)}</strong>"
    yield f'<span class="where">{escape(place)}</span></div>'
    yield f'<p class="message">{code_only(finding.message)}</p></summary>'
    yield '<div class="body">'
    yield _source(run, finding.place, _AROUND)
    if finding.related:
        yield '<ol class="chain">'
        for one in finding.related:
            yield f'<li><span class="where">{escape(spoken(one.place))}</span>'
            yield f" {code_only(one.message)}{_source(run, one.place, 0)}</li>"
        yield "</ol>"
    if finding.fix is not None:
        option = "--fix" if finding.fix.safe else "--fix --unsafe-fixes"
        yield f"<p>Fix, with <code>{option}</code>: {code_only(finding.fix.title)}</p>"
    if finding.code in run.rules:
        code = escape(finding.code)
        yield f'<details class="rule needs-script" data-page="{code}">'
        yield "<summary>Why, and what to write instead</summary></details>"
    yield "</div></details></article>"


def _class(level: Level) -> str:
    return escape(level)


def _source(run: Run, place: Place, around: int) -> str:
    """The lines of a place with those around it; empty where the file cannot be had."""
    source = run.sources.get(place.path)
    try:
        lines = _lines(source, place) if source is not None else []
    except Unreadable:
        lines = []
    if not 0 < place.line <= len(lines):
        return ""
    end = place.end_line - (place.end_column == 0 and place.end_line > place.line)
    last = min(end, place.line + _MOST - 1, len(lines))
    shown = range(max(place.line - around, 1), min(last + around, len(lines)) + 1)
    rows = "".join(_row(lines[number - 1], number, place, last) for number in shown)
    return f'<pre class="source" tabindex="-1">{rows}</pre>'


def _lines(source: SourceFile, place: Place) -> list[str]:
    if source.notebook is None or place.cell is None:
        return source.lines
    return source.notebook.written_lines(place.cell)


def _row(line: str, number: int, place: Place, last: int) -> str:
    if not place.line <= number <= last:
        return f'<span class="l"><i>{number}</i>{escape(line)}\n</span>'
    start = place.column if number == place.line else len(line) - len(line.lstrip())
    end = place.end_column if number == place.end_line else len(line)
    before, inside, after = line[:start], line[start:end], line[end:]
    marked = f"<mark>{escape(inside)}</mark>" if inside else ""
    text = f"{escape(before)}{marked}{escape(after)}"
    return f'<span class="l hit"><i>{number}</i>{text}\n</span>'


def _rules(run: Run) -> Iterator[str]:
    """The pages of the rules that found something; with a script they open in the findings."""
    found = {finding.code for finding in run.findings}
    pages = [rule for code, rule in run.rules.items() if code in found]
    if not pages:
        return
    yield '<section class="pages"><h2>The rules</h2>'
    for rule in pages:
        yield f'<article id="rule-{escape(rule.code)}">'
        yield f"<h3>{escape(_title(run, rule.code))}</h3>"
        yield f'<div class="prose">{to_html(rule.page, top=4)}</div></article>'
    yield "</section>"
