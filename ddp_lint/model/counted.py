"""Layer 7, counted: tensors that only count, which a number of Python would do as well.

Made of constants and moved on by constants, there is nothing in such a tensor that the host
did not know.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from astroid import nodes

from ddp_lint.model.contents import Where
from ddp_lint.model.flow import bindings_for
from ddp_lint.model.modules import Class
from ddp_lint.model.origins import Instance
from ddp_lint.model.torch_api import FACTORIES
from ddp_lint.model.tree import Node, dotted, walk

if TYPE_CHECKING:
    from ddp_lint.model.tensors import Tensors

_ON_DEVICE: tuple[Where, ...] = ("device", "moved", "part")
#: What fills a tensor with what the host has.
_FILLING = FACTORIES - {
    f"torch.{name}"
    for name in ("rand", "randn", "randint", "randperm", "multinomial", "empty", "load")
}
#: What moves a counter on in place, and what sets it back.
_COUNTING = frozenset({"add_", "sub_"})
_SETTING = frozenset({"zero_", "fill_"})


class Counted:
    """The counters among the tensors of one program."""

    def __init__(self, tensors: Tensors) -> None:
        self.tensors = tensors
        self.values = tensors.graph.values
        self._made: dict[tuple[int, str], list[Node]] = {}

    def counts(self, node: Node) -> bool:
        """Whether a value is such a counter."""
        if isinstance(node, nodes.Attribute):
            origins = self.tensors.graph.origins(node.expr)
            return bool(origins) and all(
                isinstance(o, Instance) and bool(self.made(o.cls, node.attrname)) for o in origins
            )
        if not isinstance(node, nodes.Name):
            return False
        bindings, unit = bindings_for(node, self.values.unit_of(node))
        if unit is None or any(b.path not in ((), ("aug",)) for b in bindings):
            return False
        name = node.name
        every = [b for b in unit.bindings.get(name, ()) if b.value is not None]
        uses = [n for n in walk(unit.node) if getattr(n, "name", None) == name]
        return bool(self._filled([(b.path, b.value) for b in every], uses))

    def made(self, cls: Class, name: str) -> list[Node]:
        """What makes the counter that an attribute is; nothing where it is none."""
        key = id(cls), name
        if key not in self._made:
            self._made[key] = []  # for whoever asks again meanwhile
            kin = self.values.mro(cls)
            stores = [(b.path, b.value) for c in kin for _, b in c.attributes.get(name, ())]
            stores += [((), value) for c in kin for value in _buffers(c, name)]
            uses = [
                node
                for c in kin
                for node in walk(c.node)
                if isinstance(node, nodes.Attribute) and node.attrname == name
            ]
            self._made[key] = self._filled(stores, uses)
        return self._made[key]

    def _filled(
        self, stores: list[tuple[tuple[int | str, ...], Node | None]], uses: Sequence[Node]
    ) -> list[Node]:
        """The calls that fill the tensor, if all else that becomes of it is counting."""
        filled = [
            value
            for path, value in stores
            if path == () and value is not None and self._is_filled(value)
        ]
        added = [value for path, value in stores if path == ("aug",) and self._adds(value)]
        if len(filled) + len(added) < len(stores):
            return []
        moved_on = bool(added)
        for use in uses:
            for method, call in _methods_on(use):
                moved_on = moved_on or method in _COUNTING
                if method.endswith("_") and not _is_constant(method, call):
                    return []
            if isinstance(use.parent, nodes.Subscript) or self._is_sent(use):
                return []
        return filled if moved_on else []

    def _is_filled(self, value: Node) -> bool:
        """``torch.tensor([start + 1], device=device)``: one number that the host has."""
        return (
            isinstance(value, nodes.Call)
            and bool(self.values.names_called(value) & _FILLING)
            and not any(self.tensors.where(given) in _ON_DEVICE for given in value.args)
        )

    def _adds(self, value: Node | None) -> bool:
        return (
            isinstance(value, nodes.AugAssign)
            and value.op in ("+=", "-=")
            and isinstance(value.value, nodes.Const)
        )

    def _is_sent(self, use: Node) -> bool:
        """``dist.all_reduce(count)``: what the other ranks have counted is not known here."""
        call = use.parent
        return isinstance(call, nodes.Call) and any(
            name.startswith("torch.distributed.") for name in self.values.names_called(call)
        )


def _buffers(cls: Class, name: str) -> Iterator[Node]:
    """``self.register_buffer("steps", torch.tensor(0))``"""
    for method in cls.methods.values():
        for call in method.calls:
            if (
                dotted(call.func).endswith(".register_buffer")
                and len(call.args) > 1
                and getattr(call.args[0], "value", None) == name
            ):
                yield call.args[1]


def _methods_on(use: Node) -> Iterator[tuple[str, nodes.Call]]:
    """The method that is called on a value, if one is, with the call."""
    up = use.parent
    if not isinstance(up, nodes.Attribute):
        return
    call = up.parent
    if isinstance(call, nodes.Call) and call.func is up:
        yield str(up.attrname), call


def _is_constant(method: str, call: nodes.Call) -> bool:
    """``count.add_(1)``"""
    return method in _COUNTING | _SETTING and all(
        isinstance(given, nodes.Const) for given in call.args
    )
