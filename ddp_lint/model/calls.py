"""Layer 4, calls: one program, who calls whom in it, and what its parameters are given.

A program is what one entry point reaches.  Facts of another entry point of the same repository
say nothing about it, even where both share a helper.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

from astroid import nodes

from ddp_lint.model.modules import Class, Module, Unit
from ddp_lint.model.origins import (
    NOTHING,
    Api,
    Code,
    Expression,
    Instance,
    Item,
    Made,
    Member,
    Origin,
    Origins,
    Param,
    Result,
    Type,
    Unknown,
    inner,
)
from ddp_lint.model.passing import argument_for
from ddp_lint.model.torch_api import ROLES, SPAWNERS, WRAPPERS
from ddp_lint.model.tree import Node, elements, entries
from ddp_lint.model.values import MOST_ORIGINS, Values

ROUNDS = 4
#: What a method of an actor is called through.
REMOTE_CALLS = frozenset({"call", "call_one", "remote", "choose", "rpc_sync", "rpc_async"})


@dataclass(frozen=True)
class Site:
    """One place from which a unit is run.

    ``call`` is the call; where the unit is handed to somebody who calls it (``mp.spawn``, a
    callback), ``given`` has the arguments as far as they are known and ``call`` the call that
    hands it over.  ``spawned`` says that new processes run it.
    """

    call: nodes.Call
    caller: Unit
    spawned: bool = False
    handed: bool = False


@dataclass(frozen=True)
class Wire:
    """What one call leads to, whatever program it is in.

    ``entered`` are units that it certainly runs, ``handed`` units given to somebody else, each
    with whether new processes run it.  ``open`` says that more may come with the parameters.
    """

    call: nodes.Call
    entered: tuple[Unit, ...]
    handed: tuple[tuple[Unit, bool], ...]
    classes: tuple[Class, ...]
    open: bool


class Wiring:
    """The wires of every unit, resolved once for all programs."""

    def __init__(self, values: Values) -> None:
        self.values = values
        self._wires: dict[int, list[Wire]] = {}
        self.stores: dict[int, nodes.Call] = {}

    def of(self, unit: Unit) -> list[Wire]:
        known = self._wires.get(id(unit))
        if known is None:
            known = self._wires[id(unit)] = [self._wire(call) for call in self._calls(unit)]
        return known

    def _calls(self, unit: Unit) -> Iterator[nodes.Call]:
        yield from unit.calls
        if "__setitem__" in self.values.names_defined:
            for store in unit.subscript_stores:
                yield self._store(store)

    def _store(self, store: nodes.Subscript) -> nodes.Call:
        """``box[key] = value`` as the call that it is: ``box.__setitem__(key, value)``."""
        statement = store.parent
        where: dict[str, Any] = {
            "lineno": store.lineno, "col_offset": store.col_offset,
            "end_lineno": store.end_lineno, "end_col_offset": store.end_col_offset,
        }  # fmt: skip
        call = nodes.Call(parent=statement, **where)
        func = nodes.Attribute("__setitem__", parent=call, **where)
        func.postinit(store.value)
        value = getattr(statement, "value", None)
        call.postinit(func, [store.slice, *([value] if value is not None else [])], [])
        self.stores[id(store)] = call
        return call

    def _wire(self, call: nodes.Call) -> Wire:
        entered: list[Unit] = []
        classes: list[Class] = []
        is_open = False
        spawns = False
        for origin in self.values.of(call.func):
            entered.extend(u for u in self.entered(origin) if u not in entered)
            if isinstance(origin, Type):
                classes.append(origin.cls)
            elif isinstance(origin, Api):
                spawns = spawns or _spawns(origin.name)
            is_open = is_open or self._is_open(origin)
        handed = () if entered else tuple(self._handed(call, spawns, classes))
        return Wire(call, tuple(entered), handed, tuple(classes), is_open)

    def _is_open(self, origin: Origin) -> bool:
        if isinstance(origin, Made) and ROLES.get(origin.name) in WRAPPERS:
            return True
        if isinstance(origin, Member) and origin.name not in self.values.names_defined:
            return False
        return any(isinstance(part, Param) for part in inner(origin))

    def _handed(
        self, call: nodes.Call, spawns: bool, classes: list[Class]
    ) -> Iterator[tuple[Unit, bool]]:
        for argument in [*call.args, *(k.value for k in call.keywords)]:
            name = getattr(argument, "attrname", getattr(argument, "name", None))
            if not isinstance(argument, nodes.Name | nodes.Attribute):
                continue
            if name not in self.values.names_defined:
                continue
            for origin in self.values.of(argument):
                if isinstance(origin, Code):
                    yield origin.unit, spawns
                elif isinstance(origin, Type):
                    classes.append(origin.cls)

    def entered(self, origin: Origin) -> Iterator[Unit]:
        """The units that a call of ``origin`` enters."""
        match origin:
            case Code(unit=unit):
                yield unit
            case Type(cls=cls):
                yield from self.method(cls, "__init__")
            case Instance(cls=cls):
                found = list(self.method(cls, "__call__")) or list(self.method(cls, "forward"))
                yield from found
            case Member(of=Code(unit=unit), name=name) if name in REMOTE_CALLS:
                yield unit
            case Member(of=Type(cls=cls), name="apply"):
                yield from self.method(cls, "forward")  # a ``torch.autograd.Function``

    def method(self, cls: Class, name: str) -> Iterator[Unit]:
        for at in self.values.mro(cls):
            if name in at.methods:
                yield at.methods[name]
                return


class CallGraph:
    """The units that a program may run, and from where."""

    def __init__(self, wiring: Wiring, roots: list[Module]) -> None:
        self.wiring = wiring
        self.values = wiring.values
        self.roots = roots
        self.units: list[Unit] = []
        self.sites: dict[int, list[Site]] = defaultdict(list)
        self.targets: dict[int, list[Unit]] = {}
        self._known: set[int] = set()
        self._classes: set[int] = set()
        self._expanded: dict[Origin, Origins] = {}
        self._busy: set[Origin] = set()
        self._pairs: set[tuple[int, int]] = set()
        self._open: list[tuple[Wire, Unit]] = []
        self._visited = 0
        self._build()

    # -- reachability -----------------------------------------------------------------------

    def _build(self) -> None:
        for root in self.roots:
            for cls in root.classes:
                self.values.mro(cls)
            for unit in root.units:
                self._reach(unit)
        self._visit_all()
        for _ in range(ROUNDS):
            before = len(self._pairs)
            self._expanded.clear()
            for wire, unit in list(self._open):
                self._complete(wire, unit)
            self._visit_all()
            if len(self._pairs) == before:
                break
        self._expanded.clear()

    def _visit_all(self) -> None:
        while self._visited < len(self.units):
            unit = self.units[self._visited]
            self._visited += 1
            for wire in self.wiring.of(unit):
                self._follow(wire, unit)

    def _follow(self, wire: Wire, unit: Unit) -> None:
        self.targets[id(wire.call)] = list(wire.entered)
        for target in wire.entered:
            self._reach(target)
            self._site(target, Site(wire.call, unit))
        for target, spawned in wire.handed:
            self._reach(target)
            self._site(target, Site(wire.call, unit, spawned, handed=True))
        for cls in wire.classes:
            self._reach_class(cls)
        if wire.open:
            self._open.append((wire, unit))

    def _complete(self, wire: Wire, unit: Unit) -> None:
        """Follow what a call leads to by what this program passes for parameters."""
        found = self.targets[id(wire.call)]
        for origin in self.expand(self.values.of(wire.call.func)):
            targets = list(self.wiring.entered(origin))
            if (
                isinstance(origin, Made)
                and ROLES.get(origin.name) in WRAPPERS
                and origin.call.args
            ):
                for wrapped in self.expand(self.values.of(origin.call.args[0])):
                    if isinstance(wrapped, Instance):
                        targets.extend(self.wiring.method(wrapped.cls, "forward"))
            for target in targets:
                if target not in found:
                    found.append(target)
                self._reach(target)
                self._site(target, Site(wire.call, unit))
            if isinstance(origin, Type):
                self._reach_class(origin.cls)

    def _reach(self, unit: Unit) -> None:
        if id(unit) not in self._known:
            self._known.add(id(unit))
            self.units.append(unit)
            for inside in unit.inside:
                self._reach(inside)

    def _reach_class(self, cls: Class) -> None:
        for at in self.values.mro(cls):
            if id(at) in self._classes:
                continue
            self._classes.add(id(at))
            for method in at.methods.values():
                self._reach(method)

    def _site(self, unit: Unit, site: Site) -> None:
        pair = (id(unit), id(site.call))
        if pair not in self._pairs:
            self._pairs.add(pair)
            self.sites[id(unit)].append(site)

    @cached_property
    def modules(self) -> list[Module]:
        """The files that the program reaches."""
        return list({id(unit.module): unit.module for unit in self.units}.values())

    # -- parameters -------------------------------------------------------------------------

    def expand(self, origins: Origins) -> Origins:
        """``origins`` with every parameter replaced by what this program passes for it.

        A parameter that nobody passes stays a ``Param``: it is unknown, not missing.
        """
        found: set[Origin] = set()
        for origin in origins:
            found.update(self._expand(origin))
            if len(found) > MOST_ORIGINS:
                found.add(Unknown(cast(Node, None)))
                break
        return frozenset(found)

    def origins(self, node: Node | None) -> Origins:
        """The origins of an expression in this program."""
        return self.expand(self.values.of(node))

    def _expand(self, origin: Origin) -> Origins:
        if not isinstance(origin, Param | Member | Result | Item):
            return frozenset({origin})
        known = self._expanded.get(origin)
        if known is not None:
            return known
        if origin in self._busy:
            return NOTHING
        self._busy.add(origin)
        try:
            found = frozenset(self._expansion(origin))
        finally:
            self._busy.discard(origin)
        if not self._busy or found:
            self._expanded[origin] = found
        return found

    def _expansion(self, origin: Origin) -> Iterator[Origin]:
        match origin:
            case Param(unit=unit, name=name):
                yield from self._passed(unit, name) or [origin]
            case Item(of=Param(unit=unit, name=name), how=how) if self._is_variadic(unit, name):
                found = list(self._variadic(unit, name, how))
                yield from found or [origin]
            case Member(of=base, name=name):
                for one in self._expand(base):
                    yield from (
                        [origin]
                        if one == base
                        else self._again(
                            self.values.member(one, name, base)  # type: ignore[arg-type]
                        )
                    )
            case Result(of=base, call=call):
                for one in self._expand(base):
                    yield from (
                        [origin] if one == base else self._again(self.values.called(one, call))
                    )
            case Item(of=base, how=how):
                for one in self._expand(base):
                    yield from [origin] if one == base else self._again(self.values.item(one, how))

    def _again(self, origins: Iterator[Origin]) -> Iterator[Origin]:
        for origin in origins:
            yield from self._expand(origin)

    def _passed(self, unit: Unit, name: str) -> set[Origin]:
        found: set[Origin] = set()
        for site in self.sites.get(id(unit), ()):
            given = self.given(site, unit, name)
            if given is None:
                found.add(Param(unit, name))
            else:
                found.update(self.expand(self.values.of(given)))
        return found

    def given(self, site: Site, unit: Unit, name: str) -> Node | None:
        """The expression that one site passes for a parameter, or None if it cannot be told."""
        if not site.handed:
            return argument_for(site.call, unit, name)
        if not site.spawned:
            return None
        arguments = next((k.value for k in site.call.keywords if k.arg == "args"), None)
        if arguments is None and len(site.call.args) > 1:
            arguments = site.call.args[1]
        shift = 0 if _func_name(site.call) == "Process" else 1
        positional = unit.positional_parameters
        if isinstance(arguments, nodes.Tuple | nodes.List) and name in positional:
            index = positional.index(name) - shift - _bound_first(unit)
            if 0 <= index < len(arguments.elts):
                return elements(arguments)[index]
        return None

    def is_spawn_index(self, unit: Unit, name: str) -> bool:
        """Whether the parameter is the index that ``mp.spawn`` gives each process."""
        first = _bound_first(unit)
        return unit.positional_parameters[first : first + 1] == [name] and any(
            site.spawned and _func_name(site.call) != "Process"
            for site in self.sites.get(id(unit), ())
        )

    def _is_variadic(self, unit: Unit, name: str) -> bool:
        return unit.is_function and name in (unit.arguments.vararg, unit.arguments.kwarg)

    def _variadic(self, unit: Unit, name: str, how: int | str) -> Iterator[Origin]:
        named = unit.parameters
        skip = 1 if unit.is_method else 0
        for site in self.sites.get(id(unit), ()):
            if site.handed:
                continue
            if name == unit.arguments.vararg:
                for argument in site.call.args[len(unit.positional_parameters) - skip :]:
                    yield from self.expand(self.values.of(argument))
                continue
            for keyword in site.call.keywords:
                if keyword.arg is None:
                    for base in self.expand(self.values.of(keyword.value)):
                        yield from self._spread(base)
                elif keyword.arg not in named and how in ("value", "iter", "item", keyword.arg):
                    yield from self.expand(self.values.of(keyword.value))

    def _spread(self, base: Origin) -> Iterator[Origin]:
        if isinstance(base, Expression) and isinstance(base.node, nodes.Dict):
            for _, value in entries(base.node):
                yield from self.expand(self.values.of(value))
        else:
            yield Item(base, "value")

    def sites_of(self, unit: Unit) -> list[Site]:
        return self.sites.get(id(unit), [])

    def targets_of(self, call: nodes.Call) -> list[Unit]:
        return self.targets.get(id(call), [])


def _bound_first(unit: Unit) -> int:
    """How many parameters a method that is handed over has already: its object, or its class."""
    return 1 if unit.is_method else 0


def _spawns(name: str) -> bool:
    return name in SPAWNERS or name.endswith((".spawn", ".Process"))


def _func_name(call: nodes.Call) -> str:
    func = call.func
    return str(getattr(func, "attrname", getattr(func, "name", "")))
