"""Layer 7, collected: where the elements of lists, batches and loaders are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from astroid import nodes

from ddp_lint.model.contents import Where, any_of
from ddp_lint.model.modules import Binding, Unit
from ddp_lint.model.tree import Node, dotted

if TYPE_CHECKING:
    from ddp_lint.model.tensors import Tensors

_SAME_ELEMENTS = frozenset({"tqdm", "iter", "reversed", "list", "islice", "cycle", "sorted"})
_MAKES_EMPTY = frozenset({"dict", "list", "defaultdict", "OrderedDict"})


class Collected:
    """What the collections of one program are made of."""

    def __init__(self, tensors: Tensors) -> None:
        self.tensors = tensors
        self.roles = tensors.roles

    def element(self, iterable: Node, path: tuple[int | str, ...]) -> Where:
        """An element of ``iterable``: a batch of a loader is on the host."""
        if isinstance(iterable, nodes.Call):
            name = getattr(iterable.func, "attrname", getattr(iterable.func, "name", ""))
            if name == "enumerate" and iterable.args and path:
                return "host" if path[0] == 0 else self.element(iterable.args[0], path[1:])
            if name in ("range", "trange"):
                return "host"
            if name == "zip" and path and isinstance(path[0], int):
                if path[0] < len(iterable.args):
                    return self.element(iterable.args[path[0]], path[1:])
            elif name in _SAME_ELEMENTS and iterable.args:
                return self.element(iterable.args[0], path)
            if name in ("items", "named_parameters", "named_buffers") and path and path[0] == 0:
                return "host"
            if name in ("named_parameters", "named_buffers"):
                return "device"
            if name in ("items", "values") and isinstance(iterable.func, nodes.Attribute):
                return self.tensors.where(iterable.func.expr)
        roles = self.roles.of(iterable)
        if "prepared loader" in roles:
            return "moved"  # also where it was a plain one before
        if roles & {"loader", "engine loader"}:
            return "host"
        return self.tensors.where(iterable)

    def put_into(self, name: str, unit: Unit) -> Where:
        """What a list or dict that starts empty is filled with in its unit."""
        return any_of([self.tensors.where(value) for value in _put_into(name, unit)])


def _put_into(name: str, unit: Unit) -> Iterator[Node]:
    for store in unit.subscript_stores:
        value = getattr(store.parent, "value", None)
        if isinstance(store.value, nodes.Name) and store.value.name == name and value is not None:
            yield value
    for call in unit.calls:
        func = call.func
        if (
            isinstance(func, nodes.Attribute)
            and func.attrname in ("append", "update", "extend")
            and isinstance(func.expr, nodes.Name)
            and func.expr.name == name
        ):
            yield from call.args


def starts_empty(binding: Binding) -> bool:
    """``losses = []`` before the loop that fills it."""
    value = binding.value
    if binding.path:
        return False
    if isinstance(value, nodes.Call):
        return dotted(value.func).rpartition(".")[2] in _MAKES_EMPTY
    return (isinstance(value, nodes.Dict) and not value.items) or (
        isinstance(value, nodes.List) and not value.elts
    )
