"""Layer 10, plugins: under which of Accelerate's plug-ins that shard a program can run at all."""

from __future__ import annotations

from collections.abc import Iterator

from astroid import nodes

from ddp_lint.model.facts import Facts
from ddp_lint.model.flow import conditions, parts_of
from ddp_lint.model.origins import Origin, Origins, is_none
from ddp_lint.model.tree import Node, dotted, elements, walk_scope

#: As ``DistributedType`` calls them, and as people do.
SHARDING = {"FSDP": "FSDP", "DEEPSPEED": "DeepSpeed"}
_EQUAL = {"==": True, "is": True, "in": True, "!=": False, "is not": False, "not in": False}
_PLUGINS = {"fsdp_plugin": "FSDP", "deepspeed_plugin": "DEEPSPEED"}
_WORDS = (b"distributed_type", *(name.encode() for name in _PLUGINS))
#: The roles of a model; an attribute also has that of what is stored there once it is prepared.
_MODELS = ({"module"}, {"module", "prepared module"})


def possible(facts: Facts, accelerator: Node) -> tuple[str, ...]:
    """The plug-ins that an accelerator may shard with, as far as the program says: it may refuse
    one, and Accelerate itself takes one model at a time for DeepSpeed."""
    mine = _made(facts, accelerator)
    refused = facts.once(_refused)
    out = frozenset.intersection(*(refused.get(o, frozenset()) for o in mine)) if mine else ()
    return tuple(text for name, text in SHARDING.items() if name not in out)


def _made(facts: Facts, accelerator: Node) -> Origins:
    """What an accelerator may be, but for the default of a parameter: ``accelerator=None``."""
    return frozenset(one for one in facts.origins(accelerator) if not is_none(one))


def _refused(facts: Facts) -> dict[Origin, frozenset[str]]:
    """By what made an accelerator, the plug-ins that the program stops at."""
    found: dict[Origin, frozenset[str]] = {}
    for accelerators, names in _refusals(facts):
        for one in accelerators:
            found[one] = found.get(one, frozenset()) | names
    return found


def _refusals(facts: Facts) -> Iterator[tuple[Origins, frozenset[str]]]:
    for test, holds in _required(facts):
        asked = _asked(test)
        if asked is not None and (names := _excluded(test, holds)):
            yield _made(facts, asked), names
    for call, _ in facts.calls:
        func = call.func
        if not isinstance(func, nodes.Attribute) or func.attrname != "prepare":
            continue
        if sum(facts.roles_of(one) in _MODELS for one in call.args) > 1:
            yield _made(facts, func.expr), frozenset({"DEEPSPEED"})


def _required(facts: Facts) -> Iterator[tuple[Node, bool]]:
    """Tests, and how each has to come out for the program to go on: ``assert``, and ``raise``
    under one condition."""
    for unit in facts.units:
        if not any(word in unit.module.source.raw for word in _WORDS):
            continue
        if not facts.ranks.is_run(unit):
            continue
        for node in (one for at in unit.statements for one in walk_scope(at)):
            if isinstance(node, nodes.Assert) and not conditions(node):
                yield from parts_of(node.test, True)
            elif isinstance(node, nodes.Raise) and len(around := conditions(node)) == 1:
                yield from parts_of(around[0].test, not around[0].holds)


def _asked(test: Node) -> Node | None:
    """The accelerator whose kind or plug-in a test asks for."""
    left = test.left if isinstance(test, nodes.Compare) else test
    if not isinstance(left, nodes.Attribute):
        return None
    if left.attrname != "distributed_type" and left.attrname not in _PLUGINS:
        return None
    base = left.expr
    return base.expr if isinstance(base, nodes.Attribute) and base.attrname == "state" else base


def _excluded(test: Node, holds: bool) -> frozenset[str]:
    """The plug-ins for which a test does not come out as it has to."""
    every = frozenset(SHARDING)
    match test:
        case nodes.Attribute(attrname=name) if name in _PLUGINS and not holds:
            return frozenset({_PLUGINS[name]})
        case nodes.Compare(left=nodes.Attribute(attrname=name), ops=[(op, right)]):
            is_equal = _EQUAL.get(op)
            if is_equal is None:
                return frozenset()
            if name in _PLUGINS:
                is_none = isinstance(right, nodes.Const) and right.value is None
                return frozenset({_PLUGINS[name]} if is_none and is_equal is holds else ())
            listed = elements(right) if isinstance(right, nodes.BaseContainer) else [right]
            named = {_kind(one) for one in listed}
            if is_equal is not holds:
                return every & named
            return frozenset() if "" in named else every - named
    return frozenset()


def _kind(node: Node) -> str:
    """``DistributedType.FSDP`` or ``"FSDP"``; "" for what is not known."""
    if isinstance(node, nodes.Const):
        return str(node.value).upper()
    of, _, name = dotted(node).rpartition(".")
    return name if of.endswith("DistributedType") else ""
