"""Layer 9, receivers: objects that are handed a value, by an attribute or a call of theirs."""

from __future__ import annotations

import re

from astroid import nodes

from ddp_lint.model.facts import Facts
from ddp_lint.model.modules import Class
from ddp_lint.model.origins import Instance
from ddp_lint.model.tree import Node, dotted, walk

#: What is there to look at or to put away, as it is called where nobody can look into it.
_SHOWING = re.compile(
    r"log|print|writ|report|record|track|meter|metric|monitor|hist|display|summar|scalar|postfix"
    r"|descri|progress|wandb|tensorboard|debug|warn|error|format|loss"
    r"|(?<![a-z])(stats?|p?bar|tb|vis\w*|put|push|send|emit|info|plot\w*|show\w*|save\w*|board)"
    r"(?![a-z])",
    re.I,
)


def readers_of(facts: Facts, target: Node) -> list[Class] | None:
    """The classes that read an attribute which their object is given from outside; None where
    that may be any of them, or copies of the object on other GPUs."""
    owner = getattr(target, "expr", None)
    readers = facts.once(_readers).get(getattr(target, "attrname", ""), [])
    kin = [
        cls
        for origin in facts.origins(owner)
        if isinstance(origin, Instance)
        for cls in (*facts.values.mro(origin.cls), *facts.values.all_below(origin.cls))
    ]
    if kin:
        readers = [cls for cls in readers if cls in kin]
    in_copies = isinstance(owner, nodes.Attribute) and "dp" in facts.roles_of(owner.expr)
    return None if readers and (not kin or in_copies) else readers


def _readers(facts: Facts) -> dict[str, list[Class]]:
    """The classes that read an attribute of their own, by its name."""
    found: dict[str, list[Class]] = {}
    for module in facts.modules:
        for cls in module.classes:
            names = {
                node.attrname
                for method in cls.methods.values()
                for node in walk(method.node)
                if isinstance(node, nodes.Attribute) and dotted(node.expr) == method.self_name
            }
            for name in sorted(names):
                found.setdefault(name, []).append(cls)
    return found


def shows(call: nodes.Call) -> bool:
    """Whether a call only shows or collects what it is handed, by what it is called."""
    return _SHOWING.search(dotted(call.func) or call.func.as_string()) is not None
