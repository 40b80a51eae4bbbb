"""The rules for people: the page of one, the table of all."""

from __future__ import annotations

from collections.abc import Iterable

from ddp_lint.rule import Rule

_FIXES = {"": "", "safe": "safe", "unsafe": "unsafe"}


def page(rule: Rule) -> str:
    """One rule's page, as Markdown, for the terminal and for the documentation."""
    facts = [f"Level: {rule.level}"]
    if not rule.on:
        facts.append(f"off unless selected by its code (`--extend-select {rule.code}`)")
    if rule.fixes:
        option = "--fix" if rule.fixes == "safe" else "--fix --unsafe-fixes"
        facts.append(f"mended by `{option}`")
    return f"# {rule.code}: {rule.name}\n\n{'; '.join(facts)}.\n\n{rule.page}\n"


def table(rules: Iterable[Rule]) -> str:
    """All rules in columns for the terminal: code, level, fix, name, summary."""
    rows = [("code", "level", "fix", "name", "finds")]
    rows += [
        (
            rule.code,
            rule.level + ("" if rule.on else ", off"),
            _FIXES[rule.fixes],
            rule.name,
            rule.summary,
        )
        for rule in rules
    ]
    widths = [max(len(row[at]) for row in rows) for at in range(4)]
    lines = (
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[4]])
        for row in rows
    )
    return "\n".join(line.rstrip() for line in lines) + "\n"


def markdown_table(rules: Iterable[Rule]) -> str:
    """The table of the README and of the index of the rule pages; links relative to docs/."""
    lines = ["| code | level | what it finds | fix |", "| --- | --- | --- | --- |"]
    for rule in rules:
        level = rule.level + ("" if rule.on else " (off)")
        link = f"[{rule.code}](docs/rules/{rule.name}.md)"
        lines.append(f"| {link} | {level} | {rule.summary} | {_FIXES[rule.fixes]} |")
    return "\n".join(lines) + "\n"
