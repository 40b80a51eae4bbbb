"""Layer 10, loading: loaders, their samplers and datasets, and what a loop draws from.

A loop rarely says ``for batch in loader``: there are ``enumerate``, progress bars, generators,
prefetchers and ``next()`` between, and frameworks that hand a loader back prepared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from astroid import nodes

from ddp_lint.model.arguments import Arguments, Calls
from ddp_lint.model.facts import Facts, Spot
from ddp_lint.model.flow import loops_around, reaching
from ddp_lint.model.modules import Class, Unit
from ddp_lint.model.origins import (
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
)
from ddp_lint.model.tree import Node, ancestors, source, statement, walk_scope

_DEEPEST = 8

#: The positional parameters of what this module reads.
LOADER = ("dataset", "batch_size", "shuffle", "sampler", "batch_sampler", "num_workers",
          "collate_fn", "pin_memory", "drop_last")  # fmt: skip
SAMPLER = ("dataset", "num_replicas", "rank", "shuffle", "seed", "drop_last")
BATCH_SAMPLER = ("sampler", "batch_size", "drop_last")

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
class Sampler(Spot):
    """A ``DistributedSampler``."""

    loading: Loading

    @property
    def arguments(self) -> Arguments:
        return self.loading.calls.arguments(self.node, SAMPLER)

    @property
    def shuffles(self) -> bool | None:
        """None where it cannot be told."""
        if self.arguments.absent("shuffle"):
            return True
        return self.loading.truth(self.arguments.given("shuffle"))

    @property
    def drops_last(self) -> bool | None:
        if self.arguments.absent("drop_last"):
            return False
        return self.loading.truth(self.arguments.given("drop_last"))

    @property
    def dataset(self) -> Node | None:
        return next(iter(self.arguments.given("dataset")), None)

    @property
    def name(self) -> str:
        """The variable that holds it, or "" where it is handed on at once."""
        return name_of(self.node)


@dataclass(frozen=True)
class Loader(Spot):
    """A ``DataLoader``: ``node`` is the call that makes it."""

    loading: Loading

    @cached_property
    def arguments(self) -> Arguments:
        return self.loading.calls.arguments(self.node, LOADER)

    @property
    def name(self) -> str:
        """The variable that holds it, or the call that makes it."""
        return name_of(self.node) or f"{source(self.node.func)}(...)"

    @property
    def dataset(self) -> Node | None:
        return next(iter(self.arguments.given("dataset")), None)

    @cached_property
    def sampler_nodes(self) -> list[Node]:
        return [*self.arguments.given("sampler"), *self.arguments.given("batch_sampler")]

    @cached_property
    def samplers(self) -> list[Sampler]:
        """The distributed samplers that it may have, also inside a batch sampler."""
        found: dict[int, Sampler] = {}
        for node in self.sampler_nodes:
            for sampler in self.loading.samplers_of(node):
                found[id(sampler.node)] = sampler
        return list(found.values())

    @property
    def has_no_sampler(self) -> bool:
        """For certain: none is given, or None is."""
        return self.arguments.complete and all(
            self.loading.is_none(node) for node in self.sampler_nodes
        )


class Loading:
    """Loaders of one program."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.calls = Calls(facts)
        self._loaders: dict[int, Loader] = {}
        self._samplers: dict[int, Sampler] = {}

    # -- nouns ------------------------------------------------------------------------------

    def loader(self, call: nodes.Call) -> Loader:
        return self._loaders.setdefault(id(call), Loader(self.facts, call, self))

    def sampler(self, call: nodes.Call) -> Sampler:
        return self._samplers.setdefault(id(call), Sampler(self.facts, call, self))

    @cached_property
    def loaders(self) -> list[Loader]:
        """Every loader that the program makes."""
        found = []
        for call, _ in self.facts.calls:
            for origin in self.facts.values.of(call):
                made_here = isinstance(origin, Made) and origin.call is call
                if made_here and self.facts.roles.role(origin) == "loader":
                    found.append(self.loader(call))
        return found

    def samplers_of(self, node: Node, depth: int = 0) -> Iterator[Sampler]:
        for origin in self.facts.origins(node):
            yield from self._samplers_in(origin, depth)

    def _samplers_in(self, origin: Origin, depth: int) -> Iterator[Sampler]:
        if depth > 3:
            return
        match origin:
            case Made(call=call):
                role = self.facts.roles.role(origin)
                if role == "distributed sampler":
                    yield self.sampler(call)
                elif role == "batch sampler":
                    for given in self.calls.arguments(call, BATCH_SAMPLER).given("sampler"):
                        yield from self.samplers_of(given, depth + 1)
            case Instance(call=nodes.Call() as call):
                if self.facts.roles.role(origin) in ("sampler", "batch sampler"):
                    given = [*call.args, *(k.value for k in call.keywords)]
                    for argument in given:
                        yield from self.samplers_of(argument, depth + 1)

    # -- small questions --------------------------------------------------------------------

    def truth(self, given: list[Node]) -> bool | None:
        """What a flag is; True where one caller of several says so."""
        found = set()
        for node in given:
            for origin in self.facts.origins(node):
                match origin:
                    case Expression(node=nodes.Const(value=value)):
                        found.add(bool(value))
                    case Expression(node=nodes.UnaryOp(op="not", operand=operand)):
                        inner = self.truth([operand])
                        found.add(None if inner is None else not inner)
                    case _:
                        found.add(None)
        if True in found:
            return True
        return False if found == {False} else None

    def is_none(self, node: Node) -> bool:
        origins = self.facts.origins(node)
        return bool(origins) and all(
            isinstance(o, Expression) and isinstance(o.node, nodes.Const) and o.node.value is None
            for o in origins
        )

    # -- what an expression draws from ------------------------------------------------------

    def sources(self, node: Node) -> list[Source]:
        """The loaders that iterating ``node`` goes through."""
        return _unique(draw.source for draw in self.draws(node, node))

    def draws(self, node: Node, at: Node) -> list[Draw]:
        """The passes that ``node`` is, where it is iterated at ``at``."""
        return list(self._draws(node, at, 0, set()))

    def _draws(self, node: Node, at: Node, depth: int, seen: set[int]) -> Iterator[Draw]:
        if depth > _DEEPEST or (id(node) in seen and not isinstance(node, nodes.Call)):
            return
        seen.add(id(node))
        match node:
            case nodes.IfExp():
                for arm in (node.body, node.orelse):
                    yield from self._draws(arm, at, depth + 1, seen)
            case nodes.Call() if (names := self.facts.names(node)) and (
                names & _PASSING_ON or any("tqdm" in n or "trange" in n for n in names)
            ):
                start = node if "builtins.iter" in names else at
                for argument in [*node.args, *_iterables(node)]:
                    yield from self._draws(argument, start, depth + 1, seen)
            case nodes.Name() | nodes.Attribute():
                values = self._values(node)
                if values:
                    for value in values:
                        yield from self._draws(value, at, depth + 1, seen)
                else:
                    yield from self._by_origins(self.facts.origins(node), at, depth)
            case _:
                yield from self._by_origins(self.facts.origins(node), at, depth)

    def _values(self, node: Node) -> list[Node]:
        """The expressions behind a name, where every one of them is known as text."""
        if isinstance(node, nodes.Attribute):
            found = []
            for origin in self.facts.origins(node.expr):
                if not isinstance(origin, Instance):
                    return []
                for cls in self.facts.values.mro(origin.cls):
                    found.extend(binding for _, binding in cls.attributes.get(node.attrname, ()))
            if any(
                b.path or b.value is None or isinstance(b.value, nodes.FunctionDef) for b in found
            ):
                return []
            return [b.value for b in found if b.value is not None]
        unit: Unit | None = self.facts.values.unit_of(node)
        first = unit
        while unit is not None and node.name not in unit.bindings:
            unit = unit.outer
        if unit is None:
            return []
        bindings = reaching(unit, node.name, node) if unit is first else unit.bindings[node.name]
        values: list[Node] = []
        for binding in bindings:
            if binding.path == () and binding.value is not None:
                values.append(binding.value)
            elif binding.path == ("param",) and node.name != unit.self_name:
                for site in self.facts.graph.sites_of(unit):
                    given = self.facts.graph.given(site, unit, node.name)
                    if given is None:
                        return []
                    values.append(given)
            else:
                return []
        return [v for v in values if not isinstance(v, nodes.FunctionDef | nodes.ClassDef)]

    def _by_origins(self, origins: Origins, at: Node, depth: int) -> Iterator[Draw]:
        for origin in origins:
            yield from self._of_origin(origin, at, depth)

    def _of_origin(self, origin: Origin, at: Node, depth: int) -> Iterator[Draw]:
        if depth > _DEEPEST:
            return
        role = self.facts.roles.role(origin)
        match origin:
            case Made(call=call) if role == "loader":
                yield self._draw(self.loader(call), at, owned=False)
            case Instance(cls=cls, call=call) if role == "loader":
                for made in self._base_calls(cls):
                    yield self._draw(
                        self.loader(made), call or at, owned="__iter__" in cls.methods
                    )
            case Result(of=Code(unit=unit, receiver=_), call=call) if unit.is_generator:
                yield from self._generated(unit, call, depth)
            case Instance(cls=cls, call=nodes.Call() as call) if role == "":
                yield from self._wrapped(cls, call, at, depth)
            case Item(of=base, how=how) if how not in ("iter",):
                for value in self.calls.item(base, how):
                    yield from self._draws(value, at, depth + 1, set())
                if role in _PREPARED and isinstance(base, Result) and isinstance(how, int):
                    yield from self._owned(base.call.args[how : how + 1], at, depth)
            case Result(call=call) if role in _PREPARED:
                yield from self._owned(call.args[:1], at, depth)
            case Result(of=Member(of=base), call=call):
                yield from self._owned(call.args, at, depth)
                yield from self._by_origins(frozenset({base}), at, depth + 1)
            case Made(name=name, call=call) if not name.startswith(_LOOKING):
                yield from self._owned([*call.args, *(k.value for k in call.keywords)], at, depth)

    def _draw(self, loader: Loader, at: Node, *, owned: bool, inner: Loops | None = None) -> Draw:
        unit = self.facts.values.unit_of(at)
        outside = self.facts.steps.loops_outside(at, unit)
        return Draw(Source(loader, owned), at, (*(inner or []), *outside))

    def _owned(self, given: list[Node], at: Node, depth: int) -> Iterator[Draw]:
        for node in given:
            if isinstance(node, nodes.Const):
                continue
            for draw in self._draws(node, at, depth + 1, set()):
                yield Draw(Source(draw.source.loader, True), draw.at, draw.loops)

    def _base_calls(self, cls: Class) -> Iterator[nodes.Call]:
        """``super().__init__(...)`` of a class of loaders."""
        for at in self.facts.values.mro(cls):
            unit = at.methods.get("__init__")
            for call in unit.calls if unit is not None else ():
                if isinstance(call.func, nodes.Attribute) and call.func.attrname == "__init__":
                    yield call

    # -- what stands between ----------------------------------------------------------------

    def _generated(self, unit: Unit, call: nodes.Call, depth: int) -> Iterator[Draw]:
        """A generator: the loops in it that go through a loader and yield."""
        for loop, iterable in _yielding(unit):
            inner = [(around, unit) for around in loops_around(loop)]
            for draw in self._inside(unit, call, iterable, loop, depth):
                own = draw.at is loop
                outside = self._draw(
                    draw.source.loader, call, owned=draw.source.owned, inner=inner if own else []
                )
                yield outside if own else draw

    def _inside(
        self, unit: Unit, call: nodes.Call, iterable: Node, at: Node, depth: int
    ) -> Iterator[Draw]:
        """What ``iterable`` is in a unit that is entered by ``call``."""
        origins: set[Origin] = set()
        handed = False
        for origin in self.facts.values.of(_stripped(iterable)):
            for one in self.facts.values.substituted(origin, unit, call):
                handed |= one is not origin or isinstance(origin, Param)
                origins.update(self.facts.graph.expand(frozenset({one})))
        if handed:
            yield from self._by_origins(frozenset(origins), at, depth + 1)
        else:
            yield from self._draws(iterable, at, depth + 1, set())

    def _wrapped(self, cls: Class, call: nodes.Call, at: Node, depth: int) -> Iterator[Draw]:
        """An object that goes through a loader for its user, a prefetcher for example."""
        methods = {name for c in self.facts.values.mro(cls) for name in c.methods}
        if not methods & {"__iter__", "__next__", "next", "__len__"}:
            return
        start = at if "__iter__" in methods else call
        iterate = next((c.methods["__iter__"] for c in self.facts.values.mro(cls)
                        if "__iter__" in c.methods), None)  # fmt: skip
        inner = _unbounded(iterate) if iterate is not None else []
        found: set[int] = set()
        for argument in [*call.args, *(k.value for k in call.keywords)]:
            for one in self._draws(argument, start, depth + 1, set()):
                if id(one.source.loader) not in found:
                    found.add(id(one.source.loader))
                    yield Draw(one.source, one.at, (*inner, *one.loops))
        if found:
            return
        for bindings in list(cls.attributes.values()):
            for _, binding in bindings:
                for origin in self.facts.origins(binding.value):
                    if isinstance(origin, Made) and self.facts.roles.role(origin) == "loader":
                        yield self._draw(self.loader(origin.call), start, owned=False, inner=inner)


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


def _unique(sources: Iterator[Source]) -> list[Source]:
    found: dict[tuple[int, bool], Source] = {}
    for one in sources:
        found.setdefault((id(one.loader.node), one.owned), one)
    return list(found.values())


def name_of(call: nodes.Call) -> str:
    """The name or attribute that is given what ``call`` makes, "" where there is none."""
    for child, parent in ancestors(call):
        if isinstance(parent, nodes.Assign | nodes.AnnAssign):
            target = parent.targets[0] if isinstance(parent, nodes.Assign) else parent.target
            if child is parent.value and isinstance(target, nodes.AssignName | nodes.AssignAttr):
                return str(target.as_string())
            return ""
        if not isinstance(parent, nodes.IfExp):
            return ""
    return ""
