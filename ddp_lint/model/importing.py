"""Layer 9, importing: a new import where isort would put it."""

from __future__ import annotations

import sys

from astroid import nodes

from ddp_lint.finding import Edit
from ddp_lint.model.facts import Facts
from ddp_lint.model.modules import Module

_Import = nodes.Import | nodes.ImportFrom


def imported(facts: Facts, module: Module, package: str, name: str) -> Edit | None:
    """``from package import name`` for a package of the standard library; None where a file
    imports nothing next to which it could stand."""
    line = f"from {package} import {name}"
    body = [one for one in module.tree.body if not _is_future(one)]
    first = next((one for one in body if isinstance(one, _Import)), None)
    if first is None:
        return None
    section = _section(module, body[body.index(first) :])
    section = [one for one in section if _is_standard(one)]
    if not section:
        return facts.insert_before(first, f"{line}\n")
    before = _before(section, package)
    if before is not None:
        return facts.insert_before(before, line)
    return facts.insert_after(section[-1], line)


def _before(section: list[_Import], package: str) -> _Import | None:
    """The import that comes next: plain imports stand first, unless the file mixes them."""
    if _is_mixed(section):
        return next((one for one in section if _called(one) > package), None)
    named = (one for one in section if isinstance(one, nodes.ImportFrom))
    return next((one for one in named if _called(one) > package), None)


def _is_mixed(section: list[_Import]) -> bool:
    """Whether a plain import follows a ``from`` import, and all are sorted by module."""
    kinds = [isinstance(one, nodes.ImportFrom) for one in section]
    called = [_called(one) for one in section]
    return kinds != sorted(kinds) and called == sorted(called)


def _section(module: Module, body: list[nodes.NodeNG]) -> list[_Import]:
    """The imports that follow one another without a blank line."""
    found: list[_Import] = []
    for one in body:
        if not isinstance(one, _Import):
            break
        above = range((found[-1].end_lineno or 0) if found else 0, (one.fromlineno or 1) - 1)
        if found and any(not module.source.lines[number].strip() for number in above):
            break
        found.append(one)
    return found


def _called(node: _Import) -> str:
    return str(node.modname if isinstance(node, nodes.ImportFrom) else node.names[0][0]).lower()


def _is_standard(node: _Import) -> bool:
    package = _called(node).partition(".")[0]
    return package in sys.stdlib_module_names and not getattr(node, "level", None)


def _is_future(node: nodes.NodeNG) -> bool:
    return isinstance(node, nodes.ImportFrom) and node.modname == "__future__"
