"""Layer 12, sharding: whether each rank trains on a share of the data, and on whose."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from astroid import nodes

from ddp_lint.finding import Edit, Fix, Related
from ddp_lint.model.arguments import inserted
from ddp_lint.model.epochs import Epochs, Feed
from ddp_lint.model.facts import Facts, Spot
from ddp_lint.model.flow import exclusive
from ddp_lint.model.guards import RANKS, UNKNOWN
from ddp_lint.model.loading import Loader, Loading
from ddp_lint.model.mending import has_group
from ddp_lint.model.modules import Class
from ddp_lint.model.origins import Expression, Instance, Item, Made, Member, Origin, Result, inner
from ddp_lint.model.tree import Node, source, walk
from ddp_lint.model.wrappers import wrappings

_KINDS = frozenset({"ddp", "fsdp", "engine"})
_IN_PLACE = frozenset(
    {"torch.distributed.fsdp.fully_shard", "torch.distributed._composable.fsdp.fully_shard"}
)
#: Model parallelism, where the ranks of one group have to see the same batch.
_SAME_BATCH = frozenset(
    {
        "torch.distributed.tensor.parallel.parallelize_module",
        "torch.distributed.pipelining.PipelineStage",
        "torch.distributed.pipelining.pipeline",
    }
)
_RANKS = re.compile(
    r"(^|_)(rank|world_?size|shard|shards|num_replicas|process_index|num_processes|node|split_by)(_|s?$)",
    re.I,
)
CUTTING = frozenset({"torch.utils.data.Subset", "torch.utils.data.dataset.Subset"})
_DEEPEST = 5
_NAMES = nodes.Name | nodes.Attribute


@dataclass(frozen=True)
class Unsharded(Spot):
    """A loader whose dataset every rank goes through as a whole: ``node`` makes it."""

    loader: Loader
    feed: Feed
    wrap: Node

    @property
    def dataset_text(self) -> str:
        return source(self.loader.dataset) if self.loader.dataset is not None else "its dataset"

    @property
    def in_same_order(self) -> bool:
        """Not shuffled: the ranks even compute the same batches."""
        loading, arguments = self.loader.loading, self.loader.arguments
        return arguments.absent("shuffle") or loading.truth(arguments.given("shuffle")) is False

    @property
    def related(self) -> tuple[Related, ...]:
        return (
            self.facts.related(self.wrap, "here the model is made one of many"),
            self.facts.related(self.feed.loop.node, "this loop trains on it"),
        )

    @property
    def fix(self) -> Fix | None:
        """Give it a sampler, under a name that the file knows, where there is a group to ask."""
        dataset = self.loader.dataset
        call = self.loader.node
        maker = self._maker
        if not isinstance(dataset, nodes.Name | nodes.Attribute) or not maker:
            return None
        if len(call.args) > 2 or any(k.arg is None for k in call.keywords):
            return None
        if not has_group(self.facts, call):
            return None
        for keyword in call.keywords:
            if keyword.arg in ("sampler", "batch_sampler"):
                return None
        shuffle = next((k for k in call.keywords if k.arg == "shuffle"), None)
        order = "False" if shuffle is None else shuffle.value.as_string()
        chosen = "" if order == "True" else f", shuffle={order}"
        text = f"sampler={maker}({dataset.as_string()}{chosen})"
        if shuffle is not None:
            edits: tuple[Edit, ...] = (self.facts.replace(shuffle, text),)
        else:
            edits = (inserted(self.facts, call, text),)
        return Fix("Give each rank its share with a DistributedSampler", edits, safe=False)

    @property
    def _maker(self) -> str:
        module = self.facts.values.module_of(self.node)
        for name, bindings in module.body.bindings.items():
            for binding in bindings:
                found = module.imports.get(id(binding))
                if found is None:
                    continue
                dotted = f"{found.module}.{found.member}" if found.member else found.module
                if dotted.endswith("DistributedSampler") and dotted.startswith("torch."):
                    return name
        for name, bindings in module.body.bindings.items():
            for binding in bindings:
                found = module.imports.get(id(binding))
                if found is not None and found.module == "torch" and found.member is None:
                    return f"{name}.utils.data.DistributedSampler"
        return ""


class Sharding:
    def __init__(self, loading: Loading, epochs: Epochs) -> None:
        self.loading = loading
        self.epochs = epochs
        self.facts: Facts = loading.facts

    def unsharded(self) -> Iterator[Unsharded]:
        """Loaders of loops that train a wrapped model, which deal everything to everybody."""
        if any(True for _ in self.facts.calls_to(_SAME_BATCH)):
            return
        seen: set[int] = set()
        for feed in self.epochs.feeds:
            loader = feed.loader
            if feed.draw.source.owned or id(loader.node) in seen:
                continue
            if not loader.has_no_sampler or not self._runs_everywhere(loader.node):
                continue
            if self._has_sharded_twin(feed) or self.is_share(loader) is not False:
                continue
            wrap = self._wrap_of(feed)
            if wrap is not None:
                seen.add(id(loader.node))
                yield Unsharded(self.facts, loader.node, loader, feed, wrap)

    def _runs_everywhere(self, node: Node) -> bool:
        return all(self.facts.ranks.audience(node).reached)

    def _has_sharded_twin(self, feed: Feed) -> bool:
        """The loop draws from another loader instead, on the way of several processes."""
        for other in self.epochs.feeds:
            if other.loop is feed.loop and other.loader is not feed.loader:
                twins = exclusive(other.loader.node, feed.loader.node) or (
                    other.loader.name == feed.loader.name
                )
                if twins and (other.loader.samplers or other.draw.source.owned):
                    return True
        return False

    def _wrap_of(self, feed: Feed) -> Node | None:
        """Where the model that the loop trains is wrapped; None where it is not."""
        for happening in feed.loop.calls:
            called = _called(happening.call)
            for origin in wrappings(self.facts, called, _KINDS):
                return _made_at(origin)
            if self._sharded_in_place:
                origins = self.facts.origins(called)
                for origin, at in self._sharded_in_place.items():
                    if origin in origins:
                        return at
        return None

    @property
    def _sharded_in_place(self) -> dict[Origin, Node]:
        return {
            origin: call
            for call, _ in self.facts.calls_to(_IN_PLACE)
            if call.args
            for origin in self.facts.origins(call.args[0])
            if isinstance(origin, Instance | Made)
        }

    # -- shares -----------------------------------------------------------------------------

    def is_share(self, loader: Loader) -> bool | None:
        """Whether the dataset of a loader is this rank's own: None where it cannot be told."""
        given = loader.arguments.given("dataset")
        others = [*loader.arguments.given("generator"), *loader.arguments.given("collate_fn")]
        if not given:
            return None
        if any(self.mentions_rank(node) for node in [*given, *others]):
            return True
        answers = {self._is_whole(o, 0) for o in loader.origins("dataset")}
        return False if answers == {True} else None

    def _is_whole(self, origin: Origin, depth: int) -> bool | None:
        """Whether it is known to be a dataset by index that asks for no rank."""
        if depth > _DEEPEST:
            return None
        samplers = self.facts.words.samplers
        match origin:
            case Made() | Instance() if self.facts.roles.is_called(origin, samplers):
                return None  # what the settings call a sampler deals shares, however
            case Instance(cls=cls):
                return True if self._is_plain(cls) else None
            case Made(name=name, call=call):
                if name in ("datasets.load_dataset", "datasets.load_from_disk"):
                    return None if any(k.arg == "streaming" for k in call.keywords) else True
                if name.startswith("datasets.Dataset."):
                    return True
                return True if self.facts.roles.role(origin) == "dataset" else None
            case Item(of=base) | Member(of=base) | Result(of=base):
                return self._is_whole(base, depth + 1)
            case Expression(node=nodes.List() | nodes.ListComp()):
                return True
        return None

    def _is_plain(self, cls: Class) -> bool:
        """A dataset class of the project that reads no rank."""
        if self.facts.roles.role(Instance(cls, None)) != "dataset":
            return False
        mro = self.facts.values.mro(cls)
        if any("__iter__" in c.methods and "__getitem__" not in c.methods for c in mro):
            return False
        return not any(_names_rank(part) for c in mro for part in walk(c.node))

    def is_certain_share(self, loader: Loader) -> bool:
        """Whether the dataset is a part that the rank chooses: a stride, a subset."""
        return any(self._cuts_by_rank(node, 0) for node in loader.arguments.given("dataset"))

    def _cuts_by_rank(self, node: Node, depth: int) -> bool:
        if depth > _DEEPEST:
            return False
        match node:
            case nodes.Subscript(slice=nodes.Slice() as cut):
                return self._depends_on_rank(cut) or self._cuts_by_rank(node.value, depth + 1)
            case nodes.Call():
                if self.facts.names(node) & CUTTING:
                    cuts = [
                        *node.args[1:2],
                        *(k.value for k in node.keywords if k.arg == "indices"),
                    ]
                    return any(self._depends_on_rank(cut) for cut in cuts)
            case nodes.Name() | nodes.Attribute():
                behind = self.epochs.drawing.behind(node)
                return bool(behind) and all(self._cuts_by_rank(b.node, depth + 1) for b in behind)
        return False

    def _depends_on_rank(self, node: Node, depth: int = 0) -> bool:
        for part in walk(node):
            if isinstance(part, nodes.Call | nodes.Name | nodes.Attribute | nodes.Subscript):
                values = [self.facts.guards.value(part, rank) for rank in RANKS]
                if UNKNOWN not in values and len({str(value) for value in values}) > 1:
                    return True
        if isinstance(node, nodes.Name) and depth < 2:
            behind = self.epochs.drawing.behind(node)
            return any(self._depends_on_rank(b.node, depth + 1) for b in behind)
        return False

    def mentions_rank(self, node: Node, depth: int = 0) -> bool:
        """Whether a rank, or the number of ranks, goes into a value."""
        if depth > _DEEPEST:
            return False
        for part in walk(node):
            if _names_rank(part):
                return True
            if isinstance(part, nodes.Call | nodes.Name | nodes.Attribute | nodes.Subscript):
                values = {str(self.facts.guards.value(part, rank)) for rank in RANKS}
                if len(values) > 1 and str(UNKNOWN) not in values:
                    return True
        behind: list[Node] = [
            call
            for origin in self.facts.origins(node)
            for part in inner(origin)
            if isinstance(call := getattr(part, "call", None), nodes.Call)
        ]
        if isinstance(node, nodes.Name | nodes.Attribute):
            behind.extend(one.node for one in self.epochs.drawing.behind(node))
        elif isinstance(node, nodes.Call):
            behind.extend(
                a for a in [*node.args, *(k.value for k in node.keywords)] if isinstance(a, _NAMES)
            )
        elif isinstance(node, nodes.Subscript):
            behind.append(node.value)
        unique = {id(one): one for one in behind if one is not node}
        return any(self.mentions_rank(one, depth + 1) for one in unique.values())


def _names_rank(node: Node) -> bool:
    names = (
        getattr(node, "name", None) if isinstance(node, nodes.Name | nodes.AssignName) else None,
        getattr(node, "attrname", None),
        getattr(node, "arg", None) if isinstance(node, nodes.Keyword) else None,
        node.value if isinstance(node, nodes.Const) and isinstance(node.value, str) else None,
    )
    return any(isinstance(n, str) and len(n) < 40 and _RANKS.search(n) for n in names)


def _called(call: nodes.Call) -> Node:
    """What a call runs: ``model`` of ``model(x)`` and of ``model.forward(x)``."""
    func = call.func
    if isinstance(func, nodes.Attribute) and func.attrname in ("forward", "backward"):
        return func.expr
    return func


def _made_at(origin: Origin) -> Node:
    return next(
        call
        for part in inner(origin)
        if isinstance(call := getattr(part, "call", None), nodes.Call)
    )
