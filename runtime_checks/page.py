"""The record as one HTML page that needs nothing else: table, pictures, every check."""

from __future__ import annotations

import re
from html import escape
from string import Template
from typing import Any

from . import svg
from .record import Record, round_for_people
from .style import PAGE
from .table import headline, values


def render(written: Record) -> str:
    """The whole page, from nothing but the record."""
    environment = written["environment"]
    launch = environment["launch"]
    ranks = f"{launch['ranks']} ranks" if launch["ranks"] > 1 else "one rank"
    nodes = f" on {launch['nodes']} nodes" if launch["nodes"] > 1 else ""
    where = environment["gpus"][0] if launch["device"] == "cuda" else environment["processor"]
    return Template(PAGE).substitute(
        verdicts=_verdicts(written["summary"]),
        where=escape(
            f"torch {environment['torch']}, Python {environment['python']}, {ranks}{nodes}, "
            f"{launch['backend']} on {where}; {written['observed']['started']}, "
            f"{written['observed']['seconds']:g} s"
        ),
        rows="".join(map(_row, written["proofs"])),
        details="".join(map(_detail, written["proofs"])),
        not_covered="".join(f"<li>{escape(each)}</li>" for each in written["not_covered"]),
        environment=_facts(environment),
        settings=_facts(written["settings"]),
    )


def _verdicts(summary: dict[str, int]) -> str:
    return "".join(
        f'<span class="verdict {status}">{count} {status.replace("_", " ")}</span>'
        for status, count in summary.items()
        if count or status == "proven"
    )


def _verdict(entry: Record) -> str:
    words = entry["status"].replace("_", " ")
    model = ' <span class="model">on a model</span>' if entry["simulated"] else ""
    return f'<span class="verdict {entry["status"]}">{words}</span>{model}'


def _row(entry: Record) -> str:
    line = headline(entry)
    cells = [
        escape(entry["rule"] or "loop"),
        f'<a href="#{entry["proof"]}">{escape(entry["proof"]).replace("_", "_<wbr>")}</a>',
        escape(line.measured or entry["reason"]),
        escape(line.bad),
        escape(line.good),
        _verdict(entry),
    ]
    kinds = ["code", "", "", "number", "number", ""]
    inner = "".join(
        f'<td class="{kind}">{cell}</td>' for kind, cell in zip(kinds, cells, strict=True)
    )
    return f"<tr>{inner}</tr>"


def _detail(entry: Record) -> str:
    parts = [f"<p>{_prose(entry['summary'])}</p>"]
    if entry["reason"]:
        parts.append(f'<p class="reason {entry["status"]}">{escape(entry["reason"])}</p>')
    if entry["simulated"]:
        parts.append(f"<p>Shown on a model: {escape(entry['simulated'])}</p>")
    if entry["picture"]:
        caption = escape(entry["picture"]["title"])
        parts.append(
            f"<figure>{svg.draw(entry['picture'])}<figcaption>{caption}</figcaption></figure>"
        )
    if entry["checks"]:
        parts.append(_checks(entry["checks"]))
    if entry["settings"]:
        parts.append(_facts(entry["settings"]))
    if entry["not_covered"]:
        parts.append(f"<p>Does not cover {escape('; '.join(entry['not_covered']))}.</p>")
    title = f"{entry['rule'] or 'loop'} {entry['proof']}"
    heading = f"<h2>{escape(title)} {_verdict(entry)}</h2>"
    return f'<section id="{entry["proof"]}">{heading}{"".join(parts)}</section>'


def _prose(text: str) -> str:
    """A sentence of a docstring, with what stands in backticks as code."""
    return re.sub(r"`+([^`]+)`+", r"<code>\1</code>", escape(text))


def _checks(checks: list[dict[str, Any]]) -> str:
    rows = []
    for check in checks:
        limits = [round_for_people(limit) for limit in check["limits"]]
        limit = limits[0] if len(set(limits)) == 1 else " | ".join(limits)
        near = (
            f" within {100 * check['rel']:.4g} %"
            if check["op"] == "close" and check["rel"]
            else ""
        )
        must = "close to" if check["op"] == "close" else check["op"]
        held = "yes" if check["ok"] else "no"
        rows.append(
            f'<tr><td class="{check["of"]}">{check["of"]}</td><td>{escape(check["name"])}</td>'
            f'<td class="number">{escape(values(check))}</td>'
            f'<td class="number">{escape(f"{must} {limit}{near}")}</td><td>{held}</td></tr>'
        )
    head = "<tr><th>side</th><th>what</th><th>measured</th><th>must be</th><th>holds</th></tr>"
    table = f"<table><thead>{head}</thead><tbody>{''.join(rows)}</tbody></table>"
    return f'<div class="wide">{table}</div>'


def _facts(facts: dict[str, Any]) -> str:
    rows = "".join(
        f"<dt>{escape(name.replace('_', ' '))}</dt><dd>{escape(_fact(value))}</dd>"
        for name, value in facts.items()
    )
    return f"<dl>{rows}</dl>"


def _fact(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_fact(inner)}" for name, inner in value.items()) or "-"
    if isinstance(value, list):
        return " x ".join(map(_fact, value)) if _is_shape(value) else ", ".join(map(_fact, value))
    return round_for_people(value, most=200) or "-"


def _is_shape(value: list[Any]) -> bool:
    return len(value) > 1 and all(type(each) is int for each in value)
