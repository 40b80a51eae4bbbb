"""Layer 10, localizing: the local rank in the place of the rank in the whole job."""

from __future__ import annotations

import re
from collections.abc import Callable

from astroid import nodes

from ddp_lint.finding import Edit
from ddp_lint.model.facts import Facts
from ddp_lint.model.flow import bindings_for, conditions, dominates, reaching
from ddp_lint.model.modules import Binding, Unit
from ddp_lint.model.origins import Api, Item, Made, Origin
from ddp_lint.model.tree import Node, dotted, precedes, walk

_GETTERS = frozenset({"os.environ.get", "os.getenv"})
_LOCAL = "LOCAL_RANK"
#: A name that says which rank it holds, and would lie with another one.
_NAME_OF_GLOBAL = re.compile(r"((global|world|dist|my|cur|current)_?)?rank(_?id)?$", re.I)
_DEEPEST = 6


def localized(facts: Facts, source: Node, uses: list[Node]) -> tuple[Edit, ...]:
    """Edits by which ``uses`` of the rank that comes from ``source`` take the local rank: by the
    name that it has, or else where the rank is asked for."""
    uses = list(dict.fromkeys(uses))
    named = [(use, name) for use in uses if (name := _local_at(facts, use)) is not None]
    if len(named) == len(uses):
        return _replaced(facts, named)
    if "os" not in facts.values.module_of(source).body.bindings:
        return ()
    if isinstance(source, nodes.Call):
        alone = uses == [source]
        return (facts.replace(source, f'int(os.environ["{_LOCAL}"])'),) if alone else ()
    return _redefined(facts, source, uses)


def _redefined(facts: Facts, source: Node, uses: list[Node]) -> tuple[Edit, ...]:
    """``"RANK"`` as ``"LOCAL_RANK"`` where the value is used for devices and nothing else; what
    is called after the rank of the job gets another name."""
    module = facts.values.module_of(source)
    every = list(walk(module.tree))
    if not isinstance(source, nodes.Const) or any(
        not isinstance(use, nodes.Name) or facts.values.module_of(use) is not module
        for use in uses
    ):
        return ()
    called = dotted(uses[0])
    read = {node for node in every if isinstance(node, nodes.Name) and node.name == called}
    made = [node for node in every if isinstance(node, nodes.AssignName) and node.name == called]
    if read != set(uses) or len(made) != 1:
        return ()
    edit = facts.replace(source, f'"{_LOCAL}"')
    if not _NAME_OF_GLOBAL.match(called):
        return (edit,)
    new = _LOCAL if called.isupper() else _LOCAL.lower()
    if any(new in _names(node) or called in getattr(node, "names", ()) for node in every):
        return ()
    renamed = _replaced(facts, [(node, new) for node in (*made, *uses)])
    return (*renamed, edit) if renamed else ()


def _names(node: Node) -> tuple[object, object]:
    return getattr(node, "name", None), getattr(node, "asname", None)


def _replaced(facts: Facts, places: list[tuple[Node, str]]) -> tuple[Edit, ...]:
    """None of them where one does not stand where its position says, as in some f-strings."""
    edits = []
    for node, text in places:
        place = facts.exact(node)
        line = facts.values.module_of(node).source.source_line(place)
        if isinstance(node, nodes.Name | nodes.AssignName) and not (
            line[place.column : place.end_column] == node.name and place.line == place.end_line
        ):
            return ()
        edits.append(facts.replace(node, text))
    return tuple(edits)


# -- the name that it has ---------------------------------------------------------------------


def _local_at(facts: Facts, use: Node) -> str | None:
    """A name that certainly holds the local rank at ``use``."""
    if isinstance(use, nodes.Name):
        bindings, _ = bindings_for(use, facts.values.unit_of(use))
        if any(binding.path == ("param",) for binding in bindings):
            return None  # whoever calls this should hand over another one
    return named_at(facts, use, _is_local)


def named_at(facts: Facts, use: Node, holds: Callable[[Facts, Binding], bool]) -> str | None:
    """A name whose bindings that reach ``use`` all are of the kind that is asked for."""
    unit = facts.values.unit_of(use)
    seen: set[str] = set()
    at: Unit | None = unit
    while at is not None:
        for name, every in at.bindings.items():
            if name in seen:
                continue
            seen.add(name)  # what is further out is hidden by it
            here = reaching(at, name, use) if at is unit else every
            if here and all(holds(facts, b) and _stands(b, use, at, unit) for b in here):
                return name
        at = at.outer
    return None


def attribute_at(facts: Facts, use: Node, holds: Callable[[Facts, Binding], bool]) -> str | None:
    """``self.rank`` where ``use`` is in a method, and only the constructor gives it a value."""
    unit = facts.values.unit_of(use)
    if unit.owner is None or unit.self_name is None or unit.name == "__init__":
        return None
    for name, stores in unit.module.attribute_stores.items():
        if len(stores) != 1:
            continue
        where, _, binding = stores[0]
        made = where.owner is unit.owner and where.name == "__init__"
        if made and not conditions(binding.node) and holds(facts, binding):
            return f"{unit.self_name}.{name}"
    return None


def _stands(binding: Binding, use: Node, at: Unit, unit: Unit) -> bool:
    if at is unit:
        return precedes(binding.node, use) and dominates(binding.node, use)
    return precedes(binding.node, unit.node) and not conditions(binding.node)


def _is_local(facts: Facts, binding: Binding) -> bool:
    return binding.path == () and binding.value is not None and _reads(facts, binding.value, 0)


def _reads(facts: Facts, node: Node, depth: int) -> bool:
    """Whether a value certainly is the local rank that the launcher has set."""
    origins = facts.origins(node)
    return depth <= _DEEPEST and bool(origins) and all(_is_read(facts, o, depth) for o in origins)


def _is_read(facts: Facts, origin: Origin, depth: int) -> bool:
    match origin:
        case Made(name="builtins.int", call=call) if call.args:
            return _reads(facts, call.args[0], depth + 1)
        case Made(name=name, call=call) if name in _GETTERS and call.args:
            return getattr(call.args[0], "value", None) == _LOCAL
        case Item(of=Api(name="os.environ"), how=how):
            return how == _LOCAL
    return False
