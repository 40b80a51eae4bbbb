"""The small markdown of rule pages as HTML: headings, paragraphs, fences, lists, tables, inline.

Everything is escaped first, so that no text can become markup of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from html import escape

_FENCE = re.compile(r"(`{3,}|~{3,})(\w*)\s*$")
_HEADING = re.compile(r"(#{1,6})\s+(.*?)\s*#*$")
_ITEM = re.compile(r"(\s*)(?:([-*+])|(\d+)[.)])\s+(.*)$")
_RULER = re.compile(r"\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$")
_TICKS = r"(?P<ticks>`+)(?P<code>.+?)(?P=ticks)"
_CODE = re.compile(_TICKS, re.S)
_INLINE = re.compile(
    _TICKS + r"|\[(?P<text>[^\]]+)\]\((?P<url>[^)\s]+)\)"
    r"|<(?P<auto>https?://[^>\s]+)>"
    r"|(?P<bare>https?://[^\s<>)\]]+[^\s<>)\].,;:])"
    r"|\*\*(?P<strong>.+?)\*\*"
    r"|(?<![\w*])\*(?P<em>[^*\s](?:[^*]*[^*\s])?)\*(?![\w*])",
    re.S,
)


def to_html(text: str, top: int = 1) -> str:
    """The HTML of ``text``.  A ``#`` heading becomes ``h<top>``, and so on down to ``h6``."""
    return "\n".join(_blocks(text.splitlines(), top))


def _blocks(lines: list[str], top: int) -> Iterator[str]:
    at = 0
    while at < len(lines):
        line = lines[at]
        start = at
        if not line.strip():
            at += 1
        elif fence := _FENCE.match(line):
            at = _find(lines, at + 1, partial(_closes, fence[1]))
            code = escape("\n".join(lines[start + 1 : at]))
            yield f'<pre class="code"><code>{code}</code></pre>'
            at += 1
        elif heading := _HEADING.match(line):
            level = min(len(heading[1]) + top - 1, 6)
            yield f"<h{level}>{inline(heading[2])}</h{level}>"
            at += 1
        elif _ITEM.match(line):
            at = _end_of_list(lines, at)
            yield _list(lines[start:at], top)
        elif "|" in line and at + 1 < len(lines) and _RULER.match(lines[at + 1]):
            at = _find(lines, at + 2, lambda text: "|" not in text)
            yield _table([line, *lines[start + 2 : at]])
        else:
            at = _find(lines, at + 1, _interrupts)
            yield f"<p>{inline(' '.join(part.strip() for part in lines[start:at]))}</p>"


def _find(lines: list[str], at: int, stop: Callable[[str], object]) -> int:
    return next((n for n in range(at, len(lines)) if stop(lines[n])), len(lines))


def _closes(fence: str, line: str) -> bool:
    return line.strip() == fence


def _interrupts(line: str) -> bool:
    return not line.strip() or any(p.match(line) for p in (_FENCE, _HEADING, _ITEM))


def _end_of_list(lines: list[str], at: int) -> int:
    """Past the items, their further lines, and blank lines between them."""
    for n in range(at + 1, len(lines)):
        line = lines[n]
        inside = not line.strip() or line.startswith((" ", "\t")) or _ITEM.match(line)
        lazy = lines[n - 1].strip() and not _interrupts(line)
        if not inside and not lazy:
            return n
    return len(lines)


def _list(lines: list[str], top: int) -> str:
    first = _ITEM.match(lines[0])
    assert first is not None
    items: list[list[str]] = []
    margin = len(first[1])
    width = margin
    for line in lines:
        item = _ITEM.match(line)
        if item and len(item[1]) <= margin:
            width = item.start(4)
            items.append([item[4]])
        else:
            items[-1].append(line[min(width, len(line) - len(line.lstrip())) :])
    tag = "ul" if first[2] else "ol"
    begin = f' start="{first[3]}"' if first[3] and first[3] != "1" else ""
    parts = "".join(f"<li>{_item(item, top)}</li>" for item in items)
    return f"<{tag}{begin}>{parts}</{tag}>"


def _item(lines: list[str], top: int) -> str:
    html = "\n".join(_blocks(lines, top))
    alone = html.startswith("<p>") and html.endswith("</p>") and html.count("<p>") == 1
    return html[3:-4] if alone else html


def _table(lines: list[str]) -> str:
    rows = [
        [inline(cell.strip()) for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
        for line in lines
    ]
    head = "".join(f"<th>{cell}</th>" for cell in rows[0])
    body = "".join(
        "<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows[1:]
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def inline(text: str) -> str:
    """Inline markdown: code, links, bold, emphasis."""
    return _spans(_INLINE, text)


def code_only(text: str) -> str:
    """Text with code in backticks and nothing else: a linted program must not place a link."""
    return _spans(_CODE, text)


def _spans(pattern: re.Pattern[str], text: str) -> str:
    parts: list[str] = []
    at = 0
    for match in pattern.finditer(text):
        parts += escape(text[at : match.start()]), _span(match)
        at = match.end()
    return "".join((*parts, escape(text[at:])))


def _span(match: re.Match[str]) -> str:
    if match["code"] is not None:
        return f"<code>{escape(match['code'].strip() or match['code'])}</code>"
    if match["strong"] is not None:
        return f"<strong>{inline(match['strong'])}</strong>"
    if match["em"] is not None:
        return f"<em>{inline(match['em'])}</em>"
    url = match["url"] or match["auto"] or match["bare"]
    shown = inline(match["text"]) if match["text"] else escape(url)
    if not url.startswith(("https://", "http://", "#")):
        return shown  # a link that means nothing outside its folder, or a script
    return f'<a href="{escape(url)}">{shown}</a>'
