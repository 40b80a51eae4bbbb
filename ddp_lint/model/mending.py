"""Layer 10, mending: edits that several rules offer, in the words of the file that they change."""

from __future__ import annotations

from collections.abc import Iterator

from astroid import nodes

from ddp_lint.finding import Edit
from ddp_lint.model.facts import Facts
from ddp_lint.model.flow import Condition, conditions
from ddp_lint.model.modules import Module, Unit
from ddp_lint.model.torch_api import DISTRIBUTED_MAKERS, INIT_GROUP
from ddp_lint.model.tree import Node, position, statement, walk

_FRAMEWORKS = {"accelerator": "is_main_process", "fabric": "is_global_zero"}
_HOROVOD = "horovod.torch.init"  # its ranks are no group of ``torch.distributed``
_DEEPEST = 6


def distributed_name(module: Module) -> str | None:
    """What ``torch.distributed`` is called in a file; None where it is not at hand."""
    by_way_of_torch: str | None = None
    for name, bindings in module.body.bindings.items():
        for binding in bindings:
            found = module.imports.get(id(binding))
            if found is None:
                continue
            whole = f"{found.module}.{found.member}" if found.member else found.module
            if whole == "torch.distributed" and not found.level:
                return name
            if whole == "torch" and not found.level:
                by_way_of_torch = f"{name}.distributed"
    return by_way_of_torch


def main_test(facts: Facts, node: Node) -> str | None:
    """A test for the first rank that works at ``node``, also without a process group."""
    unit = facts.values.unit_of(node)
    for role, attribute in _FRAMEWORKS.items():
        name = _name_of_role(facts, unit, role, node)
        if name is not None:
            return f"{name}.{attribute}"
    return rank_test(facts, node)


def rank_test(facts: Facts, node: Node) -> str | None:
    """``dist.get_rank() == 0`` as it has to be written at ``node``."""
    name = distributed_name(facts.values.module_of(node))
    if name is None or any(facts.calls_to({_HOROVOD})):
        return None
    test = f"{name}.get_rank() == 0"
    if has_group(facts, node):
        return test
    if _comes_before_group(facts, node):
        return None  # all ranks would pass
    return f"not {name}.is_initialized() or {test}"


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


# -- whether there is a group -----------------------------------------------------------------


def has_group(facts: Facts, node: Node) -> bool:
    """Whether a process group has certainly been made whenever ``node`` runs.

    Where a module wraps a model and makes no group, whoever imports it has made one.
    """
    starts_itself = all(root.is_script for root in facts.graph.roots)
    if not starts_itself and not any(facts.calls_to(INIT_GROUP)):
        return any(facts.calls_to(DISTRIBUTED_MAKERS - {_HOROVOD}))
    made = [
        at
        for call, _ in facts.calls_to(DISTRIBUTED_MAKERS - {_HOROVOD})
        for at in _seen_from_outside(facts, call, 0)
    ]
    return _has_one_before(facts, node, made, 0)


def _seen_from_outside(
    facts: Facts, call: Node, depth: int, certainly: bool = True
) -> Iterator[Node]:
    """``call``, and the calls of functions that make it."""
    yield call
    unit = facts.values.unit_of(call)
    if depth > _DEEPEST or not unit.is_function or (certainly and asks(call)):
        return
    for site in facts.graph.sites_of(unit):
        if not site.spawned and not (certainly and site.handed):
            yield from _seen_from_outside(facts, site.call, depth + 1, certainly)


def _has_one_before(facts: Facts, node: Node, made: list[Node], depth: int) -> bool:
    unit = facts.values.unit_of(node)
    told = {(c.test, c.holds) for c in asks(node)}
    for other in made:
        same = facts.values.unit_of(other) is unit and position(other) < position(node)
        if same and {(c.test, c.holds) for c in asks(other)} <= told:
            return True
    sites = facts.graph.sites_of(unit)
    if depth > _DEEPEST or not unit.is_function or not sites:
        return False
    return all(
        not site.spawned and _has_one_before(facts, site.call, made, depth + 1) for site in sites
    )


def _comes_before_group(facts: Facts, node: Node) -> bool:
    """Whether the first time that ``node`` runs, no process group can have been made: all that
    makes one, on a condition perhaps, comes only later on the way to ``node``."""
    made = [
        at
        for call, _ in facts.calls_to(DISTRIBUTED_MAKERS - {_HOROVOD})
        for at in _seen_from_outside(facts, call, 0, certainly=False)
    ]
    here = [
        position(other) < position(at)
        for at in _ways_to(facts, node, 0)
        for other in made
        if facts.values.unit_of(other) is facts.values.unit_of(at)
    ]
    return bool(here) and not any(here)


def _ways_to(facts: Facts, node: Node, depth: int) -> Iterator[Node]:
    """``node``, and the calls that lead to it in its process."""
    yield node
    unit = facts.values.unit_of(node)
    if depth <= _DEEPEST and unit.is_function:
        for site in facts.graph.sites_of(unit):
            if not site.spawned:
                yield from _ways_to(facts, site.call, depth + 1)


def asks(node: Node) -> tuple[Condition, ...]:
    """What has to hold for ``node`` to be reached, besides that its file is the program."""
    return tuple(c for c in conditions(node) if "__name__" not in c.test.as_string())


# -- edits ------------------------------------------------------------------------------------


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
