"""Layer 9, wrappers: whether a value is a DDP wrapper or the model inside one.

A model may be wrapped on one way and plain on another; the wrapped program exists, so that
counts as wrapped.  What is taken out again (``.module``, ``unwrap_model``, the arm of a branch
that asks) is the inner model, also where the other arm gives the wrapper itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from astroid import nodes

from ddp_lint.model.facts import Facts
from ddp_lint.model.flow import arm_of, conditions, parts_of, reaching
from ddp_lint.model.modules import Binding, Unit
from ddp_lint.model.origins import (
    Instance,
    Item,
    Made,
    Member,
    Origin,
    Result,
    is_none,
)
from ddp_lint.model.passing import argument_for
from ddp_lint.model.several import never_runs
from ddp_lint.model.torch_api import ROLES
from ddp_lint.model.tree import SCOPES, Node, ancestors, dotted, elements, walk

#: Functions of libraries that give the model inside a wrapper, and copies of it.
_UNWRAPPING = frozenset(
    {"unwrap_model", "extract_model_from_parallel", "unwrap", "de_parallel", "unwrap_ddp",
     "strip_ddp", "is_compiled_module"}
)  # fmt: skip
_COPYING = frozenset({"deepcopy", "copy"})
_DEEPEST = 8


def kind(facts: Facts, origin: Origin) -> str:
    """ "ddp", "dp", "fsdp", "prepared" (by Accelerate), "fabric" or "engine" for what wraps."""
    match origin:
        case Made(name=name, call=call):
            role = ROLES.get(name, "")
            if role in ("ddp", "fsdp") and never_runs(facts, call):
                return ""
            return role if role in ("ddp", "dp", "fsdp") else ""
        case Item(of=Made(name="deepspeed.initialize"), how=0):
            return "engine"
        case Item(of=Result(of=Member(of=owner))) | Result(of=Member(of=owner)):
            if facts.roles.role(origin) in ("prepared module", "prepared"):
                return "prepared" if facts.roles.role(owner) == "accelerator" else "fabric"
        case Instance(cls=cls):
            for base in facts.values.external_bases(cls):
                role = ROLES.get(base, "")
                if role in ("ddp", "dp", "fsdp"):
                    return role
    return ""


def wrappings(facts: Facts, node: Node | None, kinds: frozenset[str]) -> list[Origin]:
    """What wraps the value of ``node``, as far as it is of these kinds."""
    return [origin for origin in facts.origins(node) if kind(facts, origin) in kinds]


def is_certain(facts: Facts, node: Node, kinds: frozenset[str]) -> bool:
    """Whether the value is wrapped on every way."""
    origins = [o for o in facts.origins(node) if not is_none(o)]
    return bool(origins) and all(kind(facts, origin) in kinds for origin in origins)


def is_wrapper(facts: Facts, node: Node, kinds: frozenset[str]) -> bool:
    """Whether the value is a wrapper here, certainly or on the way of several processes."""
    return (
        bool(wrappings(facts, node, kinds))
        and inner_of(facts, node) is None
        and not is_narrowed(facts, node)
    )


# -- taken out of the wrapper -----------------------------------------------------------------


def inner_of(facts: Facts, node: Node | None) -> Node | None:
    """The wrapper whose inner model ``node`` is, as an expression; None where it is none."""
    return _inner_of(facts, node, 0, set())


def _inner_of(facts: Facts, node: Node | None, depth: int, seen: set[int]) -> Node | None:
    """``seen`` has what was asked already: functions that return each other would be asked again
    on every way from one to the other."""
    if node is None or depth > _DEEPEST or id(node) in seen:
        return None
    seen.add(id(node))
    match node:
        case nodes.Attribute(attrname="module"):
            return node.expr
        case nodes.Attribute():
            return _stored(facts, node, depth, seen)
        case nodes.IfExp():
            return _inner_of(facts, node.body, depth + 1, seen) or _inner_of(
                facts, node.orelse, depth + 1, seen
            )
        case nodes.NamedExpr():
            return _inner_of(facts, node.value, depth + 1, seen)
        case nodes.Call():
            return _returned(facts, node, depth, seen)
        case nodes.Name():
            for binding, unit in bindings_of(facts, node):
                found = _bound(facts, binding, unit, depth, seen)
                if found is not None:
                    return found
    return None


def _bound(facts: Facts, binding: Binding, unit: Unit, depth: int, seen: set[int]) -> Node | None:
    if binding.path == ("param",):
        for site in facts.graph.sites_of(unit):
            given = facts.graph.given(site, unit, binding.name)
            found = _inner_of(facts, given, depth + 1, seen)
            if found is not None:
                return found
    elif not binding.path:
        return _inner_of(facts, binding.value, depth + 1, seen)
    return None


def _stored(facts: Facts, node: nodes.Attribute, depth: int, seen: set[int]) -> Node | None:
    for origin in facts.values.of(node.expr):
        if isinstance(origin, Instance):
            for cls in facts.values.mro(origin.cls):
                for unit, binding in cls.attributes.get(node.attrname, ()):
                    if binding.value is not None and not binding.path:
                        found = _bound(facts, binding, unit, depth + 1, seen)
                        if found is not None:
                            return found
    return None


def _returned(facts: Facts, call: nodes.Call, depth: int, seen: set[int]) -> Node | None:
    name = dotted(call.func).rpartition(".")[2]
    if name in _COPYING and call.args:
        return _inner_of(facts, call.args[0], depth + 1, seen)
    if name == "getattr" and len(call.args) > 1:
        key = call.args[1]
        return call.args[0] if isinstance(key, nodes.Const) and key.value == "module" else None
    if name in ("to", "cuda", "eval", "train", "half", "float", "cpu", "requires_grad_"):
        return _inner_of(facts, getattr(call.func, "expr", None), depth + 1, seen)
    for unit in facts.graph.targets_of(call):
        if not unit.is_function or unit.name == "__init__":
            continue
        for value in unit.returned:
            found = _inner_of(facts, value, depth + 1, seen)
            if found is not None:
                return _as_passed(facts, found, unit, call)
    if name in _UNWRAPPING and call.args:
        return call.args[0]
    return None


def _as_passed(facts: Facts, node: Node, unit: Unit, call: nodes.Call) -> Node:
    """``node``, a parameter of ``unit``, as one call passes it."""
    if isinstance(node, nodes.Name) and facts.values.unit_of(node) is unit:
        return argument_for(call, unit, node.name) or node
    return node


def bindings_of(facts: Facts, node: nodes.Name) -> Iterator[tuple[Binding, Unit]]:
    """The bindings that a name may have its value from, each with its unit."""
    first = facts.values.unit_of(node)
    unit: Unit | None = first
    while unit is not None:
        if node.name in unit.bindings and node.name not in unit.globals:
            found = reaching(unit, node.name, node) if unit is first else unit.bindings[node.name]
            yield from ((binding, unit) for binding in found)
            return
        unit = unit.outer
    body = facts.values.module_of(node).body
    for binding in body.bindings.get(node.name, ()):
        yield binding, body


# -- asked before it is used ------------------------------------------------------------------


def is_narrowed(facts: Facts, node: Node) -> bool:
    """Whether a branch around ``node`` says that its value is no wrapper on this way.

    ``isinstance(model, DDP)`` and ``hasattr(model, "module")`` ask; and a branch whose other arm
    takes ``model.module`` has asked, whatever its test is.
    """
    text = node.as_string()
    for condition in conditions(node):
        for test, holds in parts_of(condition.test, condition.holds):
            if not holds and _asks_for_wrapper(facts, test, text):
                return True
        if condition.exit is not None and _takes_out(condition.exit.parent, text):
            return True
    for child, parent in ancestors(node):
        if isinstance(parent, nodes.If | nodes.IfExp):
            arm = arm_of(parent, child)
            other = {"body": parent.orelse, "orelse": parent.body}.get(arm)
            if other is not None and _takes_out(other, text):
                return True
    return False


def _asks_for_wrapper(facts: Facts, test: Node, text: str) -> bool:
    if not isinstance(test, nodes.Call) or len(test.args) < 1:
        return False
    if test.args[0].as_string() != text:
        return False
    name = dotted(test.func)
    if name == "isinstance" and len(test.args) == 2:
        kinds = test.args[1]
        asked = elements(kinds) if isinstance(kinds, nodes.Tuple) else [kinds]
        return any("Parallel" in dotted(one) or "DDP" in dotted(one) for one in asked)
    if name == "hasattr" and len(test.args) == 2:
        return isinstance(test.args[1], nodes.Const) and test.args[1].value == "module"
    return "parallel" in name.lower() or "wrapped" in name.lower() or "ddp" in name.lower()


def _takes_out(part: Node | list[Node] | None, text: str) -> bool:
    parts = part if isinstance(part, list) else [part] if part is not None else []
    return any(
        isinstance(node, nodes.Attribute)
        and node.attrname == "module"
        and node.expr.as_string() == text
        for one in parts
        if not isinstance(one, SCOPES)
        for node in walk(one)
    )
