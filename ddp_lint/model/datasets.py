"""Layer 12, datasets: which classes deal the samples of a training loop, and what one costs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from astroid import nodes

from ddp_lint.finding import Related
from ddp_lint.model.data_api import TRANSFORM_PACKAGES
from ddp_lint.model.epochs import Epochs
from ddp_lint.model.facts import Facts, Spot, called_name
from ddp_lint.model.loading import Loader, Loading
from ddp_lint.model.modules import Class, Module, Unit
from ddp_lint.model.origins import Code, Instance, Item, Made, Member, Origin, Result, Type, inner
from ddp_lint.model.phases import is_for_tests, is_left_out_of_training
from ddp_lint.model.tree import COMPREHENSIONS, Node, dotted

_DEEPEST = 6
_DATASET_ROLES = frozenset({"dataset", "iterable dataset"})
_SAMPLING = ("__getitem__", "__getitems__", "__iter__")
_BY_NAME = ("builtins.eval", "builtins.getattr", "builtins.globals", "builtins.vars",
            "importlib.import_module")  # fmt: skip

Chain = tuple[tuple[nodes.Call, Unit], ...]


@dataclass(frozen=True)
class SampleSpot(Spot):
    """Something that runs for every sample of a dataset.

    ``chain`` are the calls that lead to it, outermost first; ``loader`` is None where no loader
    is known that deals them.
    """

    unit: Unit
    chain: Chain
    owner: str
    loader: Loader | None

    @property
    def ways(self) -> list[Node]:
        """The node and the calls that lead to it: all must be passed for it to run."""
        return [*(call for call, _ in self.chain), self.node]

    @property
    def related(self) -> tuple[Related, ...]:
        found = []
        if self.loader is not None:
            found.append(
                self.facts.related(self.loader.node, f"`{self.loader.name}` deals its samples")
            )
        for call, unit in self.chain:
            found.append(
                self.facts.related(
                    call, f"`{unit.name}` calls `{called_name(call)}` for each sample"
                )
            )
        return tuple(found)


@dataclass
class _Walk:
    """One way through the code of a sample: whose it is, and what was come by."""

    owner: str
    loader: Loader | None
    found: dict[int, SampleSpot]
    cls: Class | None = None
    seen: set[int] = field(default_factory=set)


class Datasets:
    """The datasets of some loaders of one program.

    ``training``: the loaders are those that training loops draw from; where these cannot be
    followed, every dataset that a program with a training loop makes counts.
    """

    def __init__(self, loading: Loading, loaders: list[Loader], *, training: bool) -> None:
        self.loading = loading
        self.loaders = loaders
        self.training = training
        self.facts: Facts = loading.facts
        self._calls: dict[int, dict[int, tuple[Unit, ...]]] = {}

    @classmethod
    def of_training(cls, epochs: Epochs) -> Datasets:
        loaders = {id(feed.loader.node): feed.loader for feed in epochs.feeds}
        return cls(epochs.loading, list(loaders.values()), training=True)

    # -- which ------------------------------------------------------------------------------

    @cached_property
    def _origins(self) -> list[tuple[Origin, Loader | None]]:
        """What the datasets may be, also inside other datasets."""
        found: dict[Origin, Loader | None] = {}
        for loader in self.loaders:
            for origin in self._within(frozenset(loader.origins("dataset")), 0):
                found.setdefault(origin, loader)
        return list(found.items())

    def _within(self, origins: frozenset[Origin], depth: int) -> Iterator[Origin]:
        if depth > _DEEPEST:
            return
        for origin in origins:
            yield origin
            match origin:
                case Instance(call=nodes.Call() as call) | Made(call=call):
                    given = [*call.args, *(k.value for k in call.keywords)]
                case Item(of=base) | Member(of=base):
                    yield from self._within(frozenset({base}), depth + 1)
                    given = []
                case Result(of=base, call=call):
                    yield from self._within(frozenset({base}), depth + 1)
                    given = [*call.args, *(k.value for k in call.keywords)]
                case _:
                    given = self.loading.calls.elements(origin)
            for node in given:
                if isinstance(node, nodes.Name | nodes.Call | nodes.List | nodes.Attribute):
                    yield from self._within(self._datasets(node), depth + 1)

    def _datasets(self, node: Node) -> frozenset[Origin]:
        """Origins of an argument that are datasets, or may hold some."""
        return frozenset(
            o
            for o in self.facts.origins(node)
            if self.loading.calls.elements(o)
            or self.facts.roles.role(o) in _DATASET_ROLES
            or (isinstance(o, Instance) and self.is_dataset(o.cls))
            or (isinstance(o, Item) and isinstance(o.of, Made))
        )

    def is_dataset(self, cls: Class) -> bool:
        return self.facts.roles.role(Instance(cls, None)) in _DATASET_ROLES

    @cached_property
    def classes(self) -> dict[Class, Loader | None]:
        """Classes of the project whose samples the loaders deal, each with one of them."""
        found: dict[int, tuple[Class, Loader | None]] = {}
        for origin, loader in self._origins:
            if isinstance(origin, Instance):
                # ``DataLoader(self)``: an object of this class, or of one below it.
                below = self.facts.values.all_below(origin.cls) if origin.call is None else ()
                for cls in (origin.cls, *below):
                    if self._deals(cls):
                        found.setdefault(id(cls), (cls, loader))
        if self.training and self.facts.steps.loops and not found and not self._is_known:
            for cls in self._made_here or self._made_by_name:
                found.setdefault(id(cls), (cls, None))
        if self.training:  # of several that a factory may make
            trained = [one for one in found.values() if not is_for_tests(one[0])]
            return dict(trained or found.values())
        return dict(found.values())

    def _deals(self, cls: Class) -> bool:
        return any(name in c.methods for c in self.facts.values.mro(cls) for name in _SAMPLING)

    @property
    def _is_known(self) -> bool:
        """Whether the data of every training loop is known to come from elsewhere."""
        return bool(self._origins) and all(
            isinstance(o, Made) and o.name not in _BY_NAME for o, _ in self._origins
        )

    @cached_property
    def _made_here(self) -> list[Class]:
        """Dataset classes that the program makes objects of."""
        found: dict[int, Class] = {}
        for call, _ in self.facts.calls:
            for origin in self.facts.values.of(call.func):
                if isinstance(origin, Type) and self.is_dataset(origin.cls):
                    found.setdefault(id(origin.cls), origin.cls)
        return list(found.values())

    @cached_property
    def _made_by_name(self) -> list[Class]:
        """Dataset classes of modules that the program imports, where it makes datasets by name."""
        by_name = any(
            isinstance(part, Made) and part.name in _BY_NAME
            for origin, _ in self._origins
            for part in inner(origin)
        )
        if not by_name:
            return []
        return [
            cls
            for module in self._imported
            for cls in module.classes
            if self.is_dataset(cls) and self._deals(cls)
        ]

    @property
    def _imported(self) -> list[Module]:
        values = self.facts.values
        found = {module.key: module for module in self.facts.modules}
        todo = list(found.values())
        while todo:
            module = todo.pop()
            for one in [*module.imports.values(), *module.stars]:
                for name in (one.module, f"{one.module}.{one.member}".lstrip(".")):
                    key = values.codebase.find(name, module.key, one.level)
                    if key is not None and key not in found:
                        loaded = values.load(key)
                        if loaded is not None:
                            found[key] = loaded
                            todo.append(loaded)
        return list(found.values())

    # -- what a sample runs -----------------------------------------------------------------

    @cached_property
    def work(self) -> list[SampleSpot]:
        """Everything that one sample runs, each node once."""
        found: dict[int, SampleSpot] = {}
        for cls, loader in self.classes.items():
            self._enter_class(cls, loader, found)
        for origin, loader in self._origins:
            if isinstance(origin, Made) and origin.name.startswith("torchvision.datasets."):
                given = [*origin.call.args, *(k.value for k in origin.call.keywords)]
                for one in given:
                    for unit in self._transforming(one):
                        walk = _Walk(origin.name.rpartition(".")[2], loader, found)
                        self._enter(unit, (), walk)
        return list(found.values())

    def work_of(self, cls: Class) -> list[SampleSpot]:
        """What one sample of a class runs, whoever draws it."""
        found: dict[int, SampleSpot] = {}
        self._enter_class(cls, None, found)
        return list(found.values())

    def _enter_class(
        self, cls: Class, loader: Loader | None, found: dict[int, SampleSpot]
    ) -> None:
        walk = _Walk(cls.name, loader, found, cls)
        for name in _SAMPLING:
            for at in self.facts.values.mro(cls):
                if name in at.methods:
                    self._enter(at.methods[name], (), walk)
                    break

    def _enter(self, unit: Unit, chain: Chain, walk: _Walk) -> None:
        for statement in unit.statements:
            for node in self.facts.steps.sequence(statement):
                if id(node) in walk.seen or self.leaves_out(node):
                    continue
                walk.seen.add(id(node))
                if id(node) not in walk.found:
                    walk.found[id(node)] = SampleSpot(
                        self.facts, node, unit, chain, walk.owner, walk.loader
                    )
                if isinstance(node, nodes.Call) and len(chain) < _DEEPEST:
                    for target in self.entered(node, unit, walk.cls):
                        if target.is_function and all(u is not target for _, u in chain):
                            self._enter(target, (*chain, (node, unit)), walk)

    def leaves_out(self, node: Node) -> bool:
        """What training never runs; only calls and loops are asked about."""
        asked = isinstance(node, (nodes.Call, nodes.For, *COMPREHENSIONS))
        return self.training and asked and is_left_out_of_training(node)

    def entered(self, call: nodes.Call, unit: Unit, cls: Class | None) -> list[Unit]:
        """The project's own code that a call of a sample's work runs; ``cls`` is whose samples
        they are."""
        own = self._own_method(call, unit, cls) if cls is not None else None
        if own is not None:
            return [own]
        entered = list(self.facts.graph.targets_of(call))
        if not entered:
            known = self._calls.get(id(unit))
            if known is None:
                wires = self.facts.graph.wiring.of(unit)
                known = self._calls[id(unit)] = {id(w.call): w.entered for w in wires}
            entered.extend(known.get(id(call), ()))
        entered.extend(u for u in self._transforming(call.func) if u not in entered)
        return entered

    def _own_method(self, call: nodes.Call, unit: Unit, cls: Class) -> Unit | None:
        """``self.read()`` as the class answers it whose samples these are, not one beside it."""
        func = call.func
        if not isinstance(func, nodes.Attribute) or dotted(func.expr) != (unit.self_name or "."):
            return None
        above = self.facts.values.mro(cls)
        if unit.owner not in above:
            return None
        return next((c.methods[func.attrname] for c in above if func.attrname in c.methods), None)

    def _transforming(self, node: Node) -> Iterator[Unit]:
        """The project's own code in a transform, also inside containers of transforms."""
        for origin in self.transforms_in(node):
            match origin:
                case Code(unit=unit):
                    yield unit
                case Instance(cls=cls):
                    for name in ("__call__", "forward", "transform"):
                        method = next(
                            (
                                c.methods[name]
                                for c in self.facts.values.mro(cls)
                                if name in c.methods
                            ),
                            None,
                        )
                        if method is not None:
                            yield method
                            break

    def transforms_in(self, node: Node) -> list[Origin]:
        """What a transform is, and all that it holds."""
        found: list[Origin] = []
        todo = list(self.facts.origins(node))
        while todo and len(found) < 60:
            origin = todo.pop()
            if origin in found:
                continue
            found.append(origin)
            given = list(self.loading.calls.elements(origin))
            if isinstance(origin, Made) and origin.name.startswith(TRANSFORM_PACKAGES):
                given = [*origin.call.args, *(k.value for k in origin.call.keywords)]
            for inside in given:
                todo.extend(self.facts.origins(inside))
        return found
