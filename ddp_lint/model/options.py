"""Layer 9, options: what a program's command line offers, by the names that its code reads."""

from __future__ import annotations

from dataclasses import dataclass

from astroid import nodes

from ddp_lint.model.facts import Facts
from ddp_lint.model.tree import Node


@dataclass(frozen=True)
class Option:
    """One ``add_argument``: its default (None where none is given) and its help text."""

    call: nodes.Call
    default: Node | None
    help: str


def options(facts: Facts) -> dict[str, Option]:
    """The options of ``argparse`` parsers by the attribute that holds their value."""
    found: dict[str, Option] = {}
    for call, _ in facts.calls:
        if not isinstance(call.func, nodes.Attribute) or call.func.attrname != "add_argument":
            continue
        told = {keyword.arg: keyword.value for keyword in call.keywords}
        flags = [str(flag.value) for flag in call.args if isinstance(flag, nodes.Const)]
        long = [flag for flag in flags if flag.startswith("--")] or flags[:1]
        names = [flag.lstrip("-").replace("-", "_") for flag in long]
        destination = told.get("dest")
        if isinstance(destination, nodes.Const):
            names = [str(destination.value)]
        text = getattr(told.get("help"), "value", "")
        option = Option(call, told.get("default"), text if isinstance(text, str) else "")
        for name in names:
            found.setdefault(name, option)
    return found
