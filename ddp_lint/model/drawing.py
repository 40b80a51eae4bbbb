"""Layer 11, drawing: which loaders a loop draws its batches from, and what starts it anew.

A loop rarely says ``for batch in loader``: there are ``enumerate``, progress bars, generators,
prefetchers and ``next()`` between, and frameworks that hand a loader back prepared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from astroid import nodes

from ddp_lint.model.arguments import Context
from ddp_lint.model.entering import is_left_out
from ddp_lint.model.flow import bindings_for, loops_around
from ddp_lint.model.loading import Loader, Loading
from ddp_lint.model.modules import Binding, Class, Unit
from ddp_lint.model.origins import (
    Code,
    Instance,
    Item,
    Made,
    Member,
    Origin,
    Origins,
    Result,
)
from ddp_lint.model.passing import argument_for
from ddp_lint.model.tree import Node, elements, statement, walk, walk_scope

_DEEPEST = 12
_MOST = 4000

#: Calls that iterate their arguments and hand on what they find.
_PASSING_ON = frozenset(
    f"builtins.{name}" for name in ("enumerate", "zip", "iter", "reversed", "list", "tuple")
) | {"itertools.islice", "itertools.chain", "rich.progress.track", "fastprogress.progress_bar",
     "fastprogress.fastprogress.progress_bar"}  # fmt: skip
#: Calls that look at a loader without iterating it.
_LOOKING = (
    "builtins.",
    "math.",
    "numpy.",
    "torch.",
    "time.",
    "random.",
    "logging.",
    "os.",
    "wandb.",
)

_PREPARED = frozenset({"prepared loader", "engine loader"})

#: Calls that give something else to iterate.
_OTHERS = frozenset(
    {"range", "sorted", "len", "keys", "split", "splitlines", "parameters", "named_parameters",
     "modules", "named_modules", "children", "named_children", "state_dict", "listdir", "glob",
     "open", "readlines", "walk", "iterdir", "permutations", "product", "fields", "dir", "set"}
)  # fmt: skip

Loops = list[tuple[Node, Unit]]
#: Methods of frameworks that hand back what they are given, prepared.
_PREPARING = frozenset(
    {"prepare", "prepare_data_loader", "setup", "setup_dataloaders", "_setup_dataloader"}
)


@dataclass(frozen=True)
class Source:
    """What a loop draws its batches from.

    ``owned``: a framework, or something that cannot be followed, stands between the loader and
    the loop, so that what the loader lacks may be made up for there.
    """

    loader: Loader
    owned: bool = False


@dataclass(frozen=True)
class Draw:
    """A pass over a loader: ``loops`` start it again and again, innermost first.

    ``callers`` are the calls that handed the loader in, innermost first, each with the unit that
    it enters.
    """

    source: Source
    at: Node
    loops: tuple[tuple[Node, Unit], ...]
    callers: Context = ()


@dataclass(frozen=True)
class _Way:
    """How the search came to a value: where it is iterated, and whether somebody owns it.

    ``inside`` are calls that were entered on the way to it, ``callers`` those that were left
    through a parameter.
    """

    at: Node
    owned: bool = False
    depth: int = 0
    inside: Context = ()
    callers: Context = ()

    @property
    def deeper(self) -> _Way:
        return replace(self, depth=self.depth + 1)

    @property
    def taken_over(self) -> _Way:
        return replace(self, owned=True, depth=self.depth + 1)

    def entering(self, unit: Unit, call: nodes.Call) -> _Way:
        return replace(self, depth=self.depth + 1, inside=((unit, call), *self.inside))

    def leaving(self, unit: Unit, call: nodes.Call) -> _Way:
        """Back to the call that passes a parameter: that which was entered, or a caller."""
        for index, (entered, _) in enumerate(self.inside):
            if entered is unit:
                return replace(self, depth=self.depth + 1, inside=self.inside[index + 1 :])
        return replace(self, depth=self.depth + 1, callers=(*self.callers, (unit, call)))


@dataclass(frozen=True)
class Behind:
    """An expression that a name stands for.

    Where ``unit`` is given, it is a step through ``call`` of that unit: outwards to what is
    passed, or, with ``enters``, inwards to what is returned.
    """

    node: Node
    unit: Unit | None = None
    call: nodes.Call | None = None
    enters: bool = False
    prepared: bool = False

    def way(self, way: _Way) -> _Way:
        if self.unit is not None and self.call is not None:
            step = way.entering if self.enters else way.leaving
            return step(self.unit, self.call)
        return way.taken_over if self.prepared else way.deeper


class Drawing:
    """What the expressions of one program draw from."""

    def __init__(self, loading: Loading) -> None:
        self.loading = loading
        self.facts = loading.facts
        self._known: dict[tuple[int, int], list[Draw]] = {}

    @cached_property
    def _is_idle(self) -> bool:
        """A program that makes no loader."""
        return not self.loading.loaders and not any(
            self.facts.roles.role(Instance(cls, None)) == "loader"
            for module in self.facts.modules
            for cls in module.classes
        )

    def draws(self, node: Node, at: Node) -> list[Draw]:
        """The passes that ``node`` is, where it is iterated at ``at``."""
        if self._is_idle or _is_no_loader(node):
            return []
        key = id(node), id(at)
        if key not in self._known:
            self._known[key] = _unique(_Search(self).expression(node, _Way(at)))
        return self._known[key]

    # -- expressions behind a name ----------------------------------------------------------

    def behind(self, node: Node, inside: Context = ()) -> list[Behind]:
        """The expressions that a name stands for.

        Empty where one of them is not to be seen in the text.
        """
        found: list[Behind] = []
        for binding, unit in self._bindings(node):
            if binding.path == ("param",):
                given = self._passed(binding.name, unit, inside)
            else:
                given = self._bound(binding)
            if not given:
                return []
            found.extend(given)
        return found

    def _bindings(self, node: Node) -> list[tuple[Binding, Unit]]:
        if isinstance(node, nodes.Attribute):
            return self._attributes(node)
        assert isinstance(node, nodes.Name)
        found, unit = bindings_for(node, self.facts.values.unit_of(node))
        if unit is None or node.name == unit.self_name:
            return []
        return [(binding, unit) for binding in found]

    def _attributes(self, node: nodes.Attribute) -> list[tuple[Binding, Unit]]:
        found: list[tuple[Binding, Unit]] = []
        for origin in self.facts.origins(node.expr):
            if not isinstance(origin, Instance):
                return []
            for cls in self.facts.values.mro(origin.cls):
                stored = cls.attributes.get(node.attrname, ())
                found.extend((binding, unit) for unit, binding in stored)
        return found

    def _passed(self, name: str, unit: Unit, inside: Context) -> list[Behind]:
        entered = [call for at, call in inside if at is unit][:1]
        if entered:
            given = argument_for(entered[0], unit, name)
            return [Behind(given, unit, entered[0])] if given is not None else []
        found: list[Behind] = []
        for site in self.facts.graph.sites_of(unit):
            given = self.facts.graph.given(site, unit, name)
            if given is None:
                return []
            found.append(Behind(given, unit, site.call))
        return found

    def _bound(self, binding: Binding) -> list[Behind]:
        value = binding.value
        if value is None or isinstance(value, nodes.FunctionDef | nodes.ClassDef):
            return []
        if binding.path == ():
            return [Behind(value)]
        if len(binding.path) == 1 and isinstance(index := binding.path[0], int):
            return self._part(value, index)
        return []

    def _part(self, value: Node, index: int) -> list[Behind]:
        """One element of what is unpacked."""
        if isinstance(value, nodes.Tuple | nodes.List):
            return [Behind(elements(value)[index])] if index < len(value.elts) else []
        if not isinstance(value, nodes.Call):
            return []
        if isinstance(value.func, nodes.Attribute) and value.func.attrname in _PREPARING:
            return [Behind(one, prepared=True) for one in value.args[index : index + 1]]
        found: list[Behind] = []
        for unit, given in self.returned(value):
            if not isinstance(given, nodes.Tuple) or index >= len(given.elts):
                return []
            found.append(Behind(elements(given)[index], unit, value, enters=True))
        return found

    def returned(self, call: nodes.Call) -> list[tuple[Unit, Node]]:
        """The expressions that a call of a function of the project may give back."""
        found: list[tuple[Unit, Node]] = []
        for unit in self.facts.graph.targets_of(call):
            if unit.is_generator or unit.name == "__init__":
                return []
            found.extend((unit, value) for value in unit.returned)
        return found


class _Search:
    """One search; nothing is looked at twice on the same way."""

    def __init__(self, drawing: Drawing) -> None:
        self.drawing = drawing
        self.loading = drawing.loading
        self.facts = drawing.facts
        self._seen: set[tuple[object, ...]] = set()

    def _is_new(self, what: object, way: _Way) -> bool:
        key = what, id(way.at), way.owned, way.inside, way.callers
        if way.depth > _DEEPEST or len(way.callers) > 4 or key in self._seen:
            return False
        self._seen.add(key)
        return len(self._seen) < _MOST

    def expression(self, node: Node, way: _Way) -> Iterator[Draw]:
        if isinstance(node, nodes.Const) or not self._is_new(id(node), way):
            return
        match node:
            case nodes.IfExp(body=body, orelse=orelse):
                for arm in (body, orelse):
                    yield from self.expression(arm, way.deeper)
            case nodes.Call():
                yield from self._call(node, way)
            case nodes.Name() | nodes.Attribute():
                behind = self.drawing.behind(node, way.inside)
                for one in behind:
                    yield from self.expression(one.node, one.way(way))
                if not behind:
                    yield from self.origins(self._origins(node, way), way)
            case _:
                yield from self.origins(self._origins(node, way), way)

    def _origins(self, node: Node, way: _Way) -> Origins:
        return self.loading.calls.origins(node, way.inside)

    def _call(self, node: nodes.Call, way: _Way) -> Iterator[Draw]:
        names = self.facts.names(node)
        if names & _PASSING_ON or any("tqdm" in name or "trange" in name for name in names):
            start = replace(way, at=node) if "builtins.iter" in names else way
            for argument in [*node.args, *_iterables(node)]:
                yield from self.expression(argument, start.deeper)
            return
        if isinstance(node.func, nodes.Attribute) and node.func.attrname in _PREPARING:
            for argument in node.args:
                yield from self.expression(argument, way.taken_over)
            return
        returned = self.drawing.returned(node)
        for unit, value in returned:
            inner = way.entering(unit, node)
            if not is_left_out(self.facts, value, inner.inside):
                yield from self.expression(value, inner)
        if not returned:
            yield from self.origins(self._origins(node, way), way)

    def origins(self, origins: Origins, way: _Way) -> Iterator[Draw]:
        for origin in origins:
            if self._is_new(origin, way):
                yield from self._origin(origin, way)

    def _origin(self, origin: Origin, way: _Way) -> Iterator[Draw]:
        role = self.facts.roles.role(origin)
        match origin:
            case Made(call=call) if role == "loader":
                if not is_left_out(self.facts, call, way.inside):
                    yield self._draw(self.loading.loader(call, way.inside), way)
            case Instance(cls=cls, call=call) if role == "loader":
                way = replace(way, owned=way.owned or "__iter__" in cls.methods)
                for init, made in self._base_calls(cls):
                    inside = ((init, call), *way.inside) if call is not None else way.inside
                    yield self._draw(self.loading.loader(made, inside), way)
            case Result(of=Code(unit=unit), call=call) if unit.is_generator:
                yield from self._generated(unit, call, way)
            case Instance(cls=cls, call=nodes.Call() as call) if role == "":
                yield from self._wrapped(cls, call, way)
            case Item(of=base, how=how) if how != "iter":
                for value in self.loading.calls.item(base, how):
                    yield from self.expression(value, way.deeper)
                if role in _PREPARED and isinstance(base, Result) and isinstance(how, int):
                    for argument in base.call.args[how : how + 1]:
                        yield from self.expression(argument, way.taken_over)
            case Result(of=Member(of=base), call=call):
                for argument in call.args:
                    yield from self.expression(argument, way.taken_over)
                yield from self.origins(frozenset({base}), way.deeper)
            case Made(name=name, call=call) if not name.startswith(_LOOKING):
                for argument in [*call.args, *(k.value for k in call.keywords)]:
                    yield from self.expression(argument, way.taken_over)

    def _draw(self, loader: Loader, way: _Way, inner: Loops | None = None) -> Draw:
        outside = self._loops_outside(way.at, way.callers)
        return Draw(Source(loader, way.owned), way.at, (*(inner or []), *outside), way.callers)

    def _loops_outside(self, at: Node, callers: Context) -> Loops:
        """The loops around a place, and around the calls by which the loader came there."""
        unit = self.facts.values.unit_of(at)
        own: Loops = [(loop, unit) for loop in loops_around(at) if loop is not at]
        if callers and callers[0][0] is unit:
            return [*own, *self._loops_outside(callers[0][1], callers[1:])]
        return [*self.facts.steps.loops_outside(at, unit)]

    def _base_calls(self, cls: Class) -> Iterator[tuple[Unit, nodes.Call]]:
        """``super().__init__(...)`` of a class of loaders."""
        for at in self.facts.values.mro(cls):
            unit = at.methods.get("__init__")
            for call in unit.calls if unit is not None else ():
                if isinstance(call.func, nodes.Attribute) and call.func.attrname == "__init__":
                    assert unit is not None
                    yield unit, call

    # -- what stands between ----------------------------------------------------------------

    def _generated(self, unit: Unit, call: nodes.Call, way: _Way) -> Iterator[Draw]:
        """A generator: the loops in it that go through a loader and yield."""
        for loop, iterable in _yielding(unit):
            inner: Loops = [(around, unit) for around in loops_around(loop)]
            for draw in self.expression(iterable, replace(way, at=loop).entering(unit, call)):
                own = draw.at is loop
                start = replace(
                    way, at=call, owned=draw.source.owned, callers=_behind_call(draw, unit)
                )
                outside = self._draw(draw.source.loader, start, inner if own else [])
                yield outside if own else draw

    def _wrapped(self, cls: Class, call: nodes.Call, way: _Way) -> Iterator[Draw]:
        """An object that goes through a loader for its user, a prefetcher for example."""
        mro = self.facts.values.mro(cls)
        methods = {name for c in mro for name in c.methods}
        if not methods & {"__iter__", "__next__", "next", "__len__"}:
            return
        start = way.deeper if "__iter__" in methods else replace(way.deeper, at=call)
        iterate = next((c.methods["__iter__"] for c in mro if "__iter__" in c.methods), None)
        inner = _unbounded(iterate) if iterate is not None else []
        found: set[int] = set()
        for argument in [*call.args, *(k.value for k in call.keywords)]:
            for one in self.expression(argument, start):
                if id(one.source.loader) not in found:
                    found.add(id(one.source.loader))
                    yield replace(one, loops=(*inner, *one.loops))
        if found:
            return
        for bindings in list(cls.attributes.values()):
            for _, binding in bindings:
                for origin in self.facts.origins(binding.value):
                    if isinstance(origin, Made) and self.facts.roles.role(origin) == "loader":
                        yield self._draw(self.loading.loader(origin.call), start, inner)


def _is_no_loader(node: Node) -> bool:
    """What cannot lead to a loader, as its text shows."""
    at = node
    while isinstance(at, nodes.Call) and at.args and getattr(at.func, "name", "") == "enumerate":
        at = at.args[0]
    if isinstance(at, nodes.Call):
        return getattr(at.func, "attrname", getattr(at.func, "name", "")) in _OTHERS
    return isinstance(
        at, nodes.List | nodes.Tuple | nodes.Const | nodes.Dict | nodes.Set
    ) and not any(isinstance(part, nodes.Name | nodes.Attribute) for part in walk(at))


def _yielding(unit: Unit) -> Iterator[tuple[Node, Node]]:
    """Loops of a generator that yield what they find: the loop and what it goes through."""
    for loop in unit.loops:
        if isinstance(loop, nodes.For) and any(
            isinstance(n, nodes.Yield | nodes.YieldFrom) for n in walk_scope(loop)
        ):
            yield loop, loop.iter
    for node in unit.yields:
        if isinstance(node, nodes.YieldFrom) and node.value is not None:
            yield statement(node), node.value
    for call in unit.calls:
        if isinstance(call.func, nodes.Name) and call.func.name == "next" and call.args:
            yield call, call.args[0]


def _unbounded(unit: Unit) -> Loops:
    """``while`` loops of ``__iter__`` that go through a loader again and again."""
    return [
        (loop, unit)
        for loop in unit.loops
        if isinstance(loop, nodes.While)
        and any(isinstance(n, nodes.For | nodes.YieldFrom) for n in walk_scope(loop))
    ]


def _behind_call(draw: Draw, unit: Unit) -> Context:
    """The callers of a draw but for the one that enters ``unit``."""
    return tuple(pair for pair in draw.callers if pair[0] is not unit)


def _iterables(call: nodes.Call) -> list[Node]:
    return [k.value for k in call.keywords if k.arg in ("iterable", "sequence", "it")]


def _unique(draws: Iterator[Draw]) -> list[Draw]:
    found: dict[tuple[object, ...], Draw] = {}
    for one in draws:
        loops = tuple(id(node) for node, _ in one.loops)
        loader = id(one.source.loader)
        found.setdefault((loader, one.source.owned, id(one.at), loops, one.callers), one)
    return list(found.values())
