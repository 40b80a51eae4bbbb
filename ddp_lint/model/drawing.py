"""Layer 11, drawing: which loaders a loop draws its batches from, and what starts it anew.

A loop rarely says ``for batch in loader``: there are ``enumerate``, progress bars, generators,
prefetchers and ``next()`` between, and frameworks that hand a loader back prepared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from astroid import nodes

from ddp_lint.model.flow import loops_around, reaching
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
    Param,
    Result,
)
from ddp_lint.model.tree import Node, statement, walk_scope

_DEEPEST = 10

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
    """A pass over a loader: ``loops`` start it again and again, innermost first."""

    source: Source
    at: Node
    loops: tuple[tuple[Node, Unit], ...]


@dataclass(frozen=True)
class _Way:
    """How the search came to a value: where it is iterated, and whether somebody owns it."""

    at: Node
    owned: bool = False
    depth: int = 0

    @property
    def deeper(self) -> _Way:
        return replace(self, depth=self.depth + 1)

    @property
    def taken_over(self) -> _Way:
        return replace(self, owned=True, depth=self.depth + 1)


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
        if self._is_idle:
            return []
        key = id(node), id(at)
        if key not in self._known:
            self._known[key] = _unique(_Search(self).expression(node, _Way(at)))
        return self._known[key]

    # -- expressions behind a name ----------------------------------------------------------

    def behind(self, node: Node) -> list[tuple[Node, bool]]:
        """The expressions that a name stands for, and whether a framework has prepared each.

        Empty where one of them is not to be seen in the text.
        """
        found: list[tuple[Node, bool]] = []
        for binding, unit in self._bindings(node):
            if binding.path == ("param",):
                given = self._passed(binding.name, unit)
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
        unit: Unit | None = self.facts.values.unit_of(node)
        first = unit
        while unit is not None and node.name not in unit.bindings:
            unit = unit.outer
        if unit is None or node.name == unit.self_name:
            return []
        found = reaching(unit, node.name, node) if unit is first else unit.bindings[node.name]
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

    def _passed(self, name: str, unit: Unit) -> list[tuple[Node, bool]]:
        found: list[tuple[Node, bool]] = []
        for site in self.facts.graph.sites_of(unit):
            given = self.facts.graph.given(site, unit, name)
            if given is None:
                return []
            found.append((given, False))
        return found

    def _bound(self, binding: Binding) -> list[tuple[Node, bool]]:
        value = binding.value
        if value is None or isinstance(value, nodes.FunctionDef | nodes.ClassDef):
            return []
        if binding.path == ():
            return [(value, False)]
        if len(binding.path) == 1 and isinstance(index := binding.path[0], int):
            return self._part(value, index)
        return []

    def _part(self, value: Node, index: int) -> list[tuple[Node, bool]]:
        """One element of what is unpacked."""
        if isinstance(value, nodes.Tuple | nodes.List):
            return [(value.elts[index], False)] if index < len(value.elts) else []
        if not isinstance(value, nodes.Call):
            return []
        if isinstance(value.func, nodes.Attribute) and value.func.attrname in _PREPARING:
            return [(one, True) for one in value.args[index : index + 1]]
        found: list[tuple[Node, bool]] = []
        for given in self.returned(value):
            if not isinstance(given, nodes.Tuple) or index >= len(given.elts):
                return []
            found.append((given.elts[index], False))
        return found

    def returned(self, call: nodes.Call) -> list[Node]:
        """The expressions that a call of a function of the project may give back."""
        found: list[Node] = []
        for unit in self.facts.graph.targets_of(call):
            if unit.is_generator or unit.name == "__init__":
                return []
            for one in unit.returns:
                value = one.value if isinstance(one, nodes.Return) else one
                if value is not None:
                    found.append(value)
        return found


class _Search:
    """One search; nothing is looked at twice on the same way."""

    def __init__(self, drawing: Drawing) -> None:
        self.drawing = drawing
        self.loading = drawing.loading
        self.facts = drawing.facts
        self._seen: set[tuple[object, int, bool]] = set()

    def _is_new(self, what: object, way: _Way) -> bool:
        key = what, id(way.at), way.owned
        if way.depth > _DEEPEST or key in self._seen:
            return False
        self._seen.add(key)
        return True

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
                behind = self.drawing.behind(node)
                for value, prepared in behind:
                    yield from self.expression(value, way.taken_over if prepared else way.deeper)
                if not behind:
                    yield from self.origins(self.facts.origins(node), way)
            case _:
                yield from self.origins(self.facts.origins(node), way)

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
        for value in returned:
            yield from self.expression(value, way.deeper)
        if not returned:
            yield from self.origins(self.facts.origins(node), way)

    def origins(self, origins: Origins, way: _Way) -> Iterator[Draw]:
        for origin in origins:
            if self._is_new(origin, way):
                yield from self._origin(origin, way)

    def _origin(self, origin: Origin, way: _Way) -> Iterator[Draw]:
        role = self.facts.roles.role(origin)
        match origin:
            case Made(call=call) if role == "loader":
                yield self._draw(self.loading.loader(call), way)
            case Instance(cls=cls, call=call) if role == "loader":
                way = replace(way, owned=way.owned or "__iter__" in cls.methods)
                for made in self._base_calls(cls):
                    yield self._draw(self.loading.loader(made), way)
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
        unit = self.facts.values.unit_of(way.at)
        outside = self.facts.steps.loops_outside(way.at, unit)
        return Draw(Source(loader, way.owned), way.at, (*(inner or []), *outside))

    def _base_calls(self, cls: Class) -> Iterator[nodes.Call]:
        """``super().__init__(...)`` of a class of loaders."""
        for at in self.facts.values.mro(cls):
            unit = at.methods.get("__init__")
            for call in unit.calls if unit is not None else ():
                if isinstance(call.func, nodes.Attribute) and call.func.attrname == "__init__":
                    yield call

    # -- what stands between ----------------------------------------------------------------

    def _generated(self, unit: Unit, call: nodes.Call, way: _Way) -> Iterator[Draw]:
        """A generator: the loops in it that go through a loader and yield."""
        for loop, iterable in _yielding(unit):
            inner = [(around, unit) for around in loops_around(loop)]
            for draw in self._inside(unit, call, iterable, replace(way, at=loop)):
                own = draw.at is loop
                start = replace(way, at=call, owned=draw.source.owned)
                outside = self._draw(draw.source.loader, start, inner if own else [])
                yield outside if own else draw

    def _inside(self, unit: Unit, call: nodes.Call, iterable: Node, way: _Way) -> Iterator[Draw]:
        """What ``iterable`` is in a unit that is entered by ``call``."""
        origins: set[Origin] = set()
        handed = False
        for origin in self.facts.values.of(_stripped(iterable)):
            for one in self.facts.values.substituted(origin, unit, call):
                handed |= one is not origin or isinstance(origin, Param)
                origins.update(self.facts.graph.expand(frozenset({one})))
        if handed:
            yield from self.origins(frozenset(origins), way.deeper)
        else:
            yield from self.expression(iterable, way.deeper)

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
                    yield Draw(one.source, one.at, (*inner, *one.loops))
        if found:
            return
        for bindings in list(cls.attributes.values()):
            for _, binding in bindings:
                for origin in self.facts.origins(binding.value):
                    if isinstance(origin, Made) and self.facts.roles.role(origin) == "loader":
                        yield self._draw(self.loading.loader(origin.call), start, inner)


def _yielding(unit: Unit) -> Iterator[tuple[Node, Node]]:
    """Loops of a generator that yield what they find: the loop and what it goes through."""
    for loop in unit.loops:
        if isinstance(loop, nodes.For) and any(
            isinstance(n, nodes.Yield | nodes.YieldFrom) for n in walk_scope(loop)
        ):
            yield loop, loop.iter
    for node in unit.yields:
        if isinstance(node, nodes.YieldFrom):
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


def _stripped(node: Node) -> Node:
    """``loader`` of ``enumerate(loader)``."""
    while isinstance(node, nodes.Call) and node.args and isinstance(node.func, nodes.Name):
        if node.func.name not in ("enumerate", "iter", "tqdm"):
            break
        node = node.args[0]
    return node


def _iterables(call: nodes.Call) -> list[Node]:
    return [k.value for k in call.keywords if k.arg in ("iterable", "sequence", "it")]


def _unique(draws: Iterator[Draw]) -> list[Draw]:
    found: dict[tuple[int, bool, int, tuple[int, ...]], Draw] = {}
    for one in draws:
        loops = tuple(id(node) for node, _ in one.loops)
        found.setdefault((id(one.source.loader.node), one.source.owned, id(one.at), loops), one)
    return list(found.values())
