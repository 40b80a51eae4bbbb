"""Layer 7, contents: what a dictionary holds under a key.

One tensor in a dictionary says nothing about what lies under the other keys: a step count and a
setting travel in the same one as the loss.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from astroid import nodes

from ddp_lint.model.flow import bindings_for
from ddp_lint.model.modules import Binding, Unit
from ddp_lint.model.origins import Expression, Instance
from ddp_lint.model.tree import Node, dotted, elements, entries, walk

if TYPE_CHECKING:
    from ddp_lint.model.tensors import Tensors

#: Where a value lives.  "moved" is what was moved to the device as a whole, a tensor or an object
#: with tensors in it; "part" is something taken out of that, or out of a collection with tensors:
#: on the device if it is a tensor, and it may be anything else.
Where = Literal["device", "moved", "part", "host"] | None
#: An expression under the key, or where it is; and whether it certainly is under this key.
Found = tuple[Node | Where, bool]

_COPIES = frozenset({"dict", "OrderedDict", "deepcopy", "copy", "EasyDict", "defaultdict"})
LOOKS_UP = frozenset({"get", "pop", "setdefault"})


class Contents:
    """What the dictionaries of one program hold."""

    def __init__(self, tensors: Tensors) -> None:
        self.tensors = tensors
        self.graph = tensors.graph
        self._stores: dict[int, list[tuple[str, int | str | None, Node]]] = {}

    def under(self, holder: Node, key: int | str) -> Where:
        """Where ``holder[key]`` is."""
        found = list(self._values(holder, key, set()))
        sure = [value for value, certain in found if certain]
        if not sure:
            return self._where_any([value for value, _ in found])
        telling = [value for value in sure if not _is_start(value)] or sure
        return joined([self._where(value) for value in telling])

    def _where(self, value: Node | Where) -> Where:
        return value if value is None or isinstance(value, str) else self.tensors.where(value)

    def _where_any(self, values: list[Node | Where]) -> Where:
        """Any of these may lie under the key."""
        found = {self._where(value) for value in values}
        if not found - {"device", "moved"}:
            return "device" if found else None
        return "part" if found & {"device", "moved", "part"} else joined(list(found))

    # -- where the dictionary comes from ----------------------------------------------------

    def _values(self, holder: Node, key: int | str, seen: set[int]) -> Iterator[Found]:
        if id(holder) in seen:
            return
        seen.add(id(holder))
        match holder:
            case nodes.Dict():
                yield from self._displayed(holder, key, seen)
            case nodes.DictComp():
                yield holder.value, True
            case nodes.IfExp():
                yield from self._values(holder.body, key, seen)
                yield from self._values(holder.orelse, key, seen)
            case nodes.BoolOp():
                for value in holder.values:
                    yield from self._values(value, key, seen)
            case nodes.BinOp(op="|"):
                yield from self._values(holder.left, key, seen)
                yield from self._values(holder.right, key, seen)
            case nodes.NamedExpr() | nodes.Await() | nodes.Starred():
                yield from self._values(holder.value, key, seen)
            case nodes.Name():
                yield from self._of_name(holder, key, seen)
            case nodes.Attribute():
                yield from self._of_attribute(holder, key, seen)
            case nodes.Subscript(slice=nodes.Const(value=int() | str() as outer)):
                yield from self._nested(holder.value, outer, key, seen)
            case nodes.Call():
                yield from self._of_call(holder, key, seen)
            case _:
                yield self._as_a_whole(holder)

    def _as_a_whole(self, holder: Node) -> Found:
        """What can be said of each entry where nothing is known of this one."""
        where = self.tensors.where(holder)
        return "part" if where == "moved" else where, True

    def _displayed(self, display: nodes.Dict, key: int | str, seen: set[int]) -> Iterator[Found]:
        for name, value in entries(display):
            if isinstance(name, nodes.DictUnpack):
                yield from self._values(value, key, seen)
            elif not isinstance(name, nodes.Const):
                yield value, False
            elif name.value == key:
                yield value, True

    def _nested(
        self, holder: Node, outer: int | str, key: int | str, seen: set[int]
    ) -> Iterator[Found]:
        for value, certain in self._values(holder, outer, seen):
            if value is None or isinstance(value, str):
                yield value, certain
            else:
                for inside, sure in self._values(value, key, seen):
                    yield inside, certain and sure

    def _of_call(self, call: nodes.Call, key: int | str, seen: set[int]) -> Iterator[Found]:
        func = call.func
        name = getattr(func, "attrname", getattr(func, "name", ""))
        first = call.args[0] if call.args else None
        outer = _key(first)
        if name in LOOKS_UP and isinstance(func, nodes.Attribute) and outer is not None:
            yield from self._nested(func.expr, outer, key, seen)
            return
        if name == "copy" and isinstance(func, nodes.Attribute) and first is None:
            yield from self._values(func.expr, key, seen)
            return
        if name in _COPIES and not self.graph.targets_of(call):
            yield from ((k.value, True) for k in call.keywords if k.arg == key)
            yield from self._values(first, key, seen) if first is not None else ()
            return
        returned = [
            found
            for unit in self.graph.targets_of(call)
            if unit.name != "__init__"
            for value in unit.returned
            for found in self._values(value, key, seen)
        ]
        yield from returned or [self._as_a_whole(call)]

    # -- names and attributes ---------------------------------------------------------------

    def _of_name(self, name: nodes.Name, key: int | str, seen: set[int]) -> Iterator[Found]:
        first = self.graph.values.unit_of(name)
        bindings, unit = bindings_for(name, first)
        if unit is None:
            return
        for binding in bindings:
            yield from self._bound(binding, unit, key, seen)
        yield from self._stored(name.name, {id(unit): unit, id(first): first}, key, seen)

    def _bound(
        self, binding: Binding, unit: Unit, key: int | str, seen: set[int]
    ) -> Iterator[Found]:
        path, value = binding.path, binding.value
        if path == ("param",):
            yield from self._passed(binding, unit, key, seen)
        elif path == ("import",):
            for origin in self.graph.expand(frozenset(self.graph.values.bound(binding, unit))):
                if isinstance(origin, Expression):
                    yield from self._values(origin.node, key, seen)
        elif value is None or path == ("enter",):
            yield None, True
        elif path == ():
            yield from self._values(value, key, seen)
        elif path[0] == "iter":
            yield self._element(binding, value, key)
        elif isinstance(value, nodes.Call) and isinstance(path[0], int):
            yield from self._unpacked(value, path[0], binding, key, seen)
        else:
            yield self._of_binding(binding, unit)

    def _of_binding(self, binding: Binding, unit: Unit) -> Found:
        where = self.tensors.of_binding(binding, unit)
        return "part" if where == "moved" else where, True

    def _element(self, binding: Binding, iterable: Node, key: int | str) -> Found:
        if any(getattr(part, "attrname", "") == "param_groups" for part in walk(iterable)):
            return ("device" if key == "params" else "host"), True
        return self._of_binding(binding, self.graph.values.unit_of(iterable))

    def _unpacked(
        self, call: nodes.Call, index: int, binding: Binding, key: int | str, seen: set[int]
    ) -> Iterator[Found]:
        """``loss, logs = step(batch)``: the dictionary is one of the values that are returned."""
        given = [value for unit in self.graph.targets_of(call) for value in unit.returned]
        displays = [d for d in given if isinstance(d, nodes.Tuple) and index < len(d.elts)]
        if not displays:
            yield self._of_binding(binding, self.graph.values.unit_of(call))
        for display in displays:
            yield from self._values(elements(display)[index], key, seen)

    def _passed(
        self, binding: Binding, unit: Unit, key: int | str, seen: set[int]
    ) -> Iterator[Found]:
        sites = self.graph.sites_of(unit)
        if unit.arguments.kwarg == binding.name:
            for site in sites:
                for keyword in () if site.handed else site.call.keywords:
                    if keyword.arg == key:
                        yield keyword.value, True
                    elif keyword.arg is None:
                        yield from self._values(keyword.value, key, seen)
        elif not sites:
            yield self._of_binding(binding, unit)
        else:
            for site in sites:
                given = self.graph.given(site, unit, binding.name)
                if given is None:
                    yield None, True
                else:
                    yield from self._values(given, key, seen)

    def _of_attribute(
        self, attribute: nodes.Attribute, key: int | str, seen: set[int]
    ) -> Iterator[Found]:
        origins = self.graph.origins(attribute.expr)
        if not origins or not all(isinstance(o, Instance) for o in origins):
            yield self._as_a_whole(attribute)
            return
        for origin in origins:
            assert isinstance(origin, Instance)
            for cls in self.graph.values.mro(origin.cls):
                for unit, binding in cls.attributes.get(attribute.attrname, ()):
                    yield from self._bound(binding, unit, key, seen)
                methods = {id(unit): unit for unit in cls.methods.values()}
                yield from self._stored(f"self.{attribute.attrname}", methods, key, seen)

    # -- what is put in later ---------------------------------------------------------------

    def _stored(
        self, name: str, units: dict[int, Unit], key: int | str, seen: set[int]
    ) -> Iterator[Found]:
        for unit in units.values():
            for holder, under, value in self._stores_of(unit):
                if holder != name:
                    continue
                if under == key or under is None:
                    yield value, under == key
                elif under == "**":
                    yield from self._values(value, key, seen)

    def _stores_of(self, unit: Unit) -> list[tuple[str, int | str | None, Node]]:
        """``(holder, key, value)`` of all that a unit puts into dictionaries; the key is None
        where it cannot be told, and "**" where the value is one more dictionary."""
        known = self._stores.get(id(unit))
        if known is None:
            known = self._stores[id(unit)] = list(_stores(unit))
        return known


def _stores(unit: Unit) -> Iterator[tuple[str, int | str | None, Node]]:
    own = unit.self_name
    for store in unit.subscript_stores:
        value = getattr(store.parent, "value", None)
        if value is not None:
            key = _key(store.slice)
            yield _holder(store.value, own), key, value
    for call in unit.calls:
        func = call.func
        if isinstance(func, nodes.Attribute) and func.attrname in ("update", "setdefault"):
            holder = _holder(func.expr, own)
            if func.attrname == "setdefault" and len(call.args) == 2:
                key = _key(call.args[0])
                yield holder, key, call.args[1]
            elif func.attrname == "update":
                yield from ((holder, "**", argument) for argument in call.args[:1])
                yield from ((holder, k.arg or "**", k.value) for k in call.keywords)


def _holder(node: Node, own: str | None) -> str:
    """``info``, or ``self.info`` whatever the method calls its object."""
    name = dotted(node)
    return f"self.{name.removeprefix(f'{own}.')}" if own and name.startswith(f"{own}.") else name


def _key(node: Node | None) -> int | str | None:
    value = node.value if isinstance(node, nodes.Const) else None
    return value if isinstance(value, int | str) else None


def _is_start(value: Node | Where) -> bool:
    """``sums["loss"] = 0.0`` before a loop that adds tensors to it, or None."""
    return isinstance(value, nodes.Const | nodes.List | nodes.Dict)


def joined(found: list[Where]) -> Where:
    """What several ways to one value come to: on the device where one says so and none says that
    it is on the host."""
    if "host" not in found:
        for where in ("device", "moved", "part"):
            if where in found:
                return where
        return None
    return "host" if all(where == "host" for where in found) else None


def any_of(found: list[Where]) -> Where:
    """Where a collection of these is: on the device as soon as one of them is."""
    for where in ("device", "moved", "part"):
        if where in found:
            return where
    return "host" if found and all(f == "host" for f in found) else None
