"""Subject: which stream is the current one at a place, and which side stream a name stands for."""

from __future__ import annotations

from astroid import nodes

from ddp_lint.model.facts import Facts
from ddp_lint.model.flow import with_items
from ddp_lint.model.origins import Made
from ddp_lint.model.tree import Node

STREAMS = frozenset({"torch.cuda.Stream", "torch.Stream", "torch.cuda.streams.Stream"})
ENTERING = frozenset({"torch.cuda.stream", "torch.cuda.StreamContext"})
_CURRENT = frozenset({"torch.cuda.current_stream"})


def entered(facts: Facts, node: Node) -> Node | None:
    """The stream that a ``with`` around ``node`` makes the current one."""
    for context, _ in with_items(node):
        if isinstance(context, nodes.Call) and context.args and facts.names(context) & ENTERING:
            return context.args[0]
    return None


def sides(facts: Facts, stream: Node) -> frozenset[int]:
    """The calls, by identity, that make the side stream which ``stream`` is."""
    found: set[int] = set()
    for origin in facts.origins(stream):
        if isinstance(origin, Made) and origin.name in STREAMS:
            found.add(id(origin.call))
        elif isinstance(origin, Made) and origin.name in _CURRENT:
            current = entered(facts, origin.call)
            found |= sides(facts, current) if current is not None else set()
    return frozenset(found)


def is_own_wait(facts: Facts, call: nodes.Call) -> bool:
    """``torch.cuda.current_stream().wait_stream(side)`` within ``with torch.cuda.stream(side)``:
    there the current stream is the side stream."""
    func = call.func
    if not isinstance(func, nodes.Attribute) or func.attrname != "wait_stream" or not call.args:
        return False
    return not sides(facts, func.expr).isdisjoint(sides(facts, call.args[0]))
