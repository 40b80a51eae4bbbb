"""Subject: gradients that a program sums over its ranks by hand, in place of DDP."""

from __future__ import annotations

from collections.abc import Iterator

from astroid import nodes

from ddp_lint.model.facts import Facts
from ddp_lint.model.flow import reaching
from ddp_lint.model.tree import COMPREHENSIONS, Node, dotted, elements, walk_scope

REDUCES = frozenset(
    {
        "torch.distributed.all_reduce",
        "torch.distributed.all_reduce_coalesced",
        "torch.distributed.distributed_c10d.all_reduce",
        "mmengine.dist.all_reduce",
        "composer.utils.dist.all_reduce",
    }
)
#: What gives the same numbers in another shape, or several tensors as one.
_SAME_NUMBERS = frozenset(
    {"data", "view", "reshape", "flatten", "contiguous", "detach", "clone", "ravel", "float", "to",
     "cat", "concat", "concatenate", "stack", "parameters_to_vector", "_flatten_dense_tensors",
     "flatten_dense_tensors", "list", "tuple"}
)  # fmt: skip
_DEEPEST = 6


def reduced_gradient(facts: Facts, call: nodes.Call) -> nodes.Attribute | None:
    """The ``p.grad`` whose sum over all ranks this call takes, also as a part of one long vector
    that is copied back; None for all other calls, and for sums over a part of the ranks."""
    if not call.args or not facts.names(call) & REDUCES or _is_of_a_group(call):
        return None
    given = call.args[0]
    gradient = _gradient_in(facts, given, 0)
    if gradient is None or _is_in_place(facts, given) or _is_copied_back(facts, call):
        return gradient
    return None


def _is_of_a_group(call: nodes.Call) -> bool:
    """Ranks that share a layer sum other gradients than those that share the data."""
    given = [*call.args[2:3], *(k.value for k in call.keywords if k.arg in ("group", None))]
    return any(not (isinstance(g, nodes.Const) and g.value is None) for g in given)


def _gradient_in(facts: Facts, node: Node, depth: int) -> nodes.Attribute | None:
    """The gradient that ``node`` holds, whole; a norm or a mean of one is none."""
    if depth > _DEEPEST:
        return None
    match node:
        case nodes.Attribute(attrname="grad" | "main_grad"):
            return node
        case nodes.Attribute(attrname=name, expr=inner) if name in _SAME_NUMBERS:
            return _gradient_in(facts, inner, depth + 1)
        case nodes.Call():
            return _handed_on(facts, node, depth)
        case nodes.BinOp(op="/" | "*"):
            return _gradient_in(facts, node.left, depth + 1)
        case nodes.List() | nodes.Tuple():
            parts = (_gradient_in(facts, element, depth + 1) for element in elements(node))
            return next((part for part in parts if part is not None), None)
        case nodes.Name():
            values = [*_values_of(facts, node), *_passed_for(facts, node)]
            parts = (_gradient_in(facts, value, depth + 1) for value in values)
            return next((part for part in parts if part is not None), None)
        case _ if isinstance(node, COMPREHENSIONS) and not isinstance(node, nodes.DictComp):
            return _gradient_in(facts, node.elt, depth + 1)
    return None


def _handed_on(facts: Facts, call: nodes.Call, depth: int) -> nodes.Attribute | None:
    name = dotted(call.func).rpartition(".")[2] or getattr(call.func, "attrname", "")
    if name not in _SAME_NUMBERS:
        return None
    if isinstance(call.func, nodes.Attribute):
        found = _gradient_in(facts, call.func.expr, depth + 1)
        if found is not None:
            return found
    return _gradient_in(facts, call.args[0], depth + 1) if call.args else None


def _values_of(facts: Facts, name: nodes.Name) -> Iterator[Node]:
    """What a local name holds: assigned, an element of what is iterated, appended."""
    unit = facts.values.unit_of(name)
    for binding in reaching(unit, name.name, name):
        if binding.value is not None and binding.path in ((), ("iter",)):
            yield binding.value
    for call in unit.calls:
        func = call.func
        if (
            isinstance(func, nodes.Attribute)
            and func.attrname in ("append", "extend")
            and isinstance(func.expr, nodes.Name)
            and func.expr.name == name.name
            and call.args
        ):
            yield call.args[0]


def _passed_for(facts: Facts, name: nodes.Name) -> list[Node]:
    """What the callers pass for a parameter, where all that they pass is in sight."""
    unit = facts.values.unit_of(name)
    if all(binding.path != ("param",) for binding in unit.bindings.get(name.name, ())):
        return []
    sites = facts.graph.sites_of(unit)
    given = [facts.graph.given(site, unit, name.name) for site in sites]
    return [node for node in given if node is not None] if None not in given else []


def _is_in_place(facts: Facts, node: Node, depth: int = 0) -> bool:
    """Whether the sum is written into the gradients themselves."""
    if depth > _DEEPEST:
        return False
    if isinstance(node, nodes.Name):  # ``gradient = p.grad``, ``for g in gradients``
        values = [*_values_of(facts, node), *_passed_for(facts, node)]
        return bool(values) and all(_is_in_place(facts, value, depth + 1) for value in values)
    if isinstance(node, nodes.List | nodes.Tuple):
        return all(_is_in_place(facts, element, depth + 1) for element in elements(node))
    if isinstance(node, nodes.ListComp | nodes.GeneratorExp):
        return _is_in_place(facts, node.elt, depth + 1)
    return isinstance(node, nodes.Attribute) and _is_gradient(node)


def _is_gradient(node: Node) -> bool:
    """``p.grad`` or ``p.grad.data``, read or written."""
    at = node
    while isinstance(at, nodes.Attribute | nodes.AssignAttr) and at.attrname == "data":
        at = at.expr
    name = getattr(at, "attrname", "")
    return name in ("grad", "main_grad")


def _is_copied_back(facts: Facts, call: nodes.Call) -> bool:
    """Whether the function that sums a copy of the gradients writes to some again."""
    unit = facts.values.unit_of(call)
    for node in walk_scope(unit.node):
        if isinstance(node, nodes.AssignAttr) and _is_gradient(node):
            return True
        if isinstance(node, nodes.Attribute) and node.attrname in ("copy_", "set_"):
            return True
        if isinstance(node, nodes.Name | nodes.Attribute):
            last = getattr(node, "attrname", getattr(node, "name", ""))
            if last in ("_foreach_copy_", "vector_to_parameters"):
                return True
    return False
