"""Layer 10, mending: edits that several rules offer, in the words of the file that they change."""

from __future__ import annotations

from collections.abc import Iterator

from astroid import nodes

from ddp_lint.finding import Edit
from ddp_lint.model.facts import Facts
from ddp_lint.model.flow import conditions
from ddp_lint.model.modules import Module, Unit
from ddp_lint.model.torch_api import DISTRIBUTED_MAKERS, INIT_GROUP
from ddp_lint.model.tree import Node, statement, walk

_FRAMEWORKS = {"accelerator": "is_main_process", "fabric": "is_global_zero"}


def distributed_name(module: Module) -> str | None:
    """What ``torch.distributed`` is called in a file; None where it is not at hand."""
    for name, bindings in module.body.bindings.items():
        for binding in bindings:
            found = module.imports.get(id(binding))
            if found is None:
                continue
            whole = f"{found.module}.{found.member}" if found.member else found.module
            if whole == "torch.distributed" and not found.level:
                return name
            if whole == "torch" and not found.level:
                return f"{name}.distributed"
    return None


def main_test(facts: Facts, node: Node) -> str | None:
    """A test for the first rank that works at ``node``."""
    unit = facts.values.unit_of(node)
    for role, attribute in _FRAMEWORKS.items():
        name = _name_of_role(facts, unit, role, node)
        if name is not None:
            return f"{name}.{attribute}"
    name = distributed_name(unit.module)
    if name is None:
        return None
    test = f"{name}.get_rank() == 0"
    return f"not {name}.is_initialized() or {test}" if _group_is_optional(facts) else test


def _name_of_role(facts: Facts, unit: Unit, role: str, node: Node) -> str | None:
    at: Unit | None = unit
    while at is not None:
        for name, bindings in at.bindings.items():
            for binding in bindings:
                stands = at is not unit or binding.at < (node.lineno or 0, 0)
                if binding.path == () and stands and role in facts.roles_of(binding.value):
                    return name
        at = at.outer
    return None


def _group_is_optional(facts: Facts) -> bool:
    """Whether the program also runs without a process group."""
    makers = [call for call, _ in facts.calls_to(INIT_GROUP)]
    makers = makers or [call for call, _ in facts.calls_to(DISTRIBUTED_MAKERS)]
    for call in makers:
        at: Node = call
        for _ in range(4):
            if conditions(at):
                return True
            sites = facts.graph.sites_of(facts.values.unit_of(at))
            if not sites or sites[0].spawned:
                break
            at = sites[0].call
            if at.root() is call.root() and _is_main_guard(at):
                break
    return False


def _is_main_guard(node: Node) -> bool:
    return any("__name__" in condition.test.as_string() for condition in conditions(node))


def under_test(facts: Facts, node: Node, test: str) -> tuple[Edit, ...]:
    """Put the simple statement of ``node`` below ``if test:``; nothing where that is not safe."""
    at = statement(node)
    if not isinstance(at, nodes.Expr | nodes.Assign) or at.lineno is None:
        return ()
    if any(_spans_lines(part) for part in walk(at)):
        return ()
    file = facts.values.module_of(at).source
    lines = file.lines
    first = lines[at.lineno - 1]
    indent = first[: len(first) - len(first.lstrip())]
    if first[: at.col_offset].strip():
        return ()  # something stands before it on its line
    newline = "\r\n" if "\r\n" in file.text else "\n"
    column = at.col_offset or 0
    start = file.place(at.lineno, column, at.lineno, column)
    edits = [Edit(start, f"if {test}:{newline}{indent}    ")]
    for line in range(at.lineno + 1, (at.end_lineno or at.lineno) + 1):
        if lines[line - 1].strip():
            edits.append(Edit(file.place(line, 0, line, 0), "    "))
    return tuple(edits)


def _spans_lines(node: Node) -> bool:
    return (
        isinstance(node, nodes.Const | nodes.JoinedStr)
        and node.end_lineno is not None
        and node.end_lineno != node.lineno
    )


def imports_of(module: Module) -> Iterator[str]:
    """The names that a file's imports bind."""
    for name, bindings in module.body.bindings.items():
        if any(id(binding) in module.imports for binding in bindings):
            yield name
