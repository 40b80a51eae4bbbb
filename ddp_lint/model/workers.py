"""Layer 13, workers: what goes wrong, or is missing, where a loader has worker processes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from astroid import nodes

from ddp_lint.finding import Fix, Related
from ddp_lint.model.arguments import removed
from ddp_lint.model.data_api import HANDLES, IN_MEMORY_DATASETS, SAMPLE_WORK
from ddp_lint.model.datasets import Datasets, SampleSpot
from ddp_lint.model.epochs import Epochs, Feed
from ddp_lint.model.facts import Facts, Spot
from ddp_lint.model.flow import conditions
from ddp_lint.model.loading import Loader, Loading
from ddp_lint.model.modules import Class, Unit
from ddp_lint.model.origins import Expression, Instance, Made, Origin
from ddp_lint.model.placing import is_cuda
from ddp_lint.model.samples import Samples
from ddp_lint.model.tree import Node, dotted, is_within, source

_SAMPLERS = frozenset({"distributed sampler", "sampler", "batch sampler"})
_FACTORIES = frozenset(
    f"torch.{name}"
    for name in ("tensor", "as_tensor", "zeros", "ones", "empty", "full", "rand", "randn",
                 "arange", "randint", "eye", "linspace")
)  # fmt: skip


# -- two orders ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class TwoOrders(Spot):
    """A loader that is given ``shuffle=True`` and a sampler: it cannot be made."""

    loader: Loader

    @property
    def sampler_text(self) -> str:
        name = "sampler" if self.loader.arguments.given("sampler") else "batch_sampler"
        return f"{name}={source(self.loader.sampler_nodes[0])}"

    @property
    def fix(self) -> Fix | None:
        """Take ``shuffle=True`` away, where it is written in the call."""
        call = self.loader.node
        keyword = next((k for k in call.keywords if k.arg == "shuffle"), None)
        if keyword is not None:
            edit = removed(self.facts, call, keyword)
        elif len(call.args) > 2:
            edit = self.facts.replace(call.args[2], "False")
        else:
            edit = None
        title = "Leave the order to the sampler"
        return Fix(title, (edit,), safe=True) if edit is not None else None


def two_orders(loading: Loading) -> Iterator[TwoOrders]:
    for loader in loading.loaders:
        given = loader.arguments
        shuffles = [o for node in given.given("shuffle") for o in loading.facts.origins(node)]
        if not given.always("shuffle") or not shuffles or not all(map(_is_true, shuffles)):
            continue
        for name in ("sampler", "batch_sampler"):
            samplers = [o for node in given.given(name) for o in loading.facts.origins(node)]
            if given.always(name) and samplers and all(_is_sampler(loading, o) for o in samplers):
                yield TwoOrders(loading.facts, loader.node, loader)
                break


def _is_true(origin: Origin) -> bool:
    return isinstance(origin, Expression) and getattr(origin.node, "value", None) is True


def _is_sampler(loading: Loading, origin: Origin) -> bool:
    return loading.facts.roles.role(origin) in _SAMPLERS


# -- CUDA in a worker ---------------------------------------------------------------------------


@dataclass(frozen=True)
class CudaInWorker(SampleSpot):
    """A tensor is made on, or moved to, the GPU where a worker makes a sample."""


def cuda_in_workers(loading: Loading) -> Iterator[CudaInWorker]:
    loaders = [
        loader for loader in loading.loaders if (loader.workers or 0) > 0 and _forks(loader)
    ]
    if not loaders:
        return
    for spot in Datasets(loading, loaders, training=False).work:
        if not isinstance(spot.node, nodes.Call) or not _uses_cuda(loading.facts, spot.node):
            continue
        if all(_is_plain(c.test) for node in spot.ways for c in conditions(node)):
            yield CudaInWorker(
                spot.facts, spot.node, spot.unit, spot.chain, spot.owner, spot.loader
            )


def _forks(loader: Loader) -> bool:
    """Whether the workers are forked, as they are unless something else is asked for."""
    return all(
        isinstance(node, nodes.Const) and node.value in ("fork", None)
        for node in loader.arguments.given("multiprocessing_context")
    )


def _uses_cuda(facts: Facts, call: nodes.Call) -> bool:
    func = call.func
    if isinstance(func, nodes.Attribute):
        if func.attrname == "cuda" and not facts.graph.targets_of(call):
            return not facts.names(call)
        if func.attrname == "to":
            given = [*call.args[:1], *(k.value for k in call.keywords if k.arg == "device")]
            return bool(given) and is_cuda(facts, given[0])
    names = facts.names(call)
    if any(name.startswith("torch.cuda.") and name.endswith("Tensor") for name in names):
        return True
    if names & _FACTORIES:
        return any(k.arg == "device" and is_cuda(facts, k.value) for k in call.keywords)
    return False


def _is_plain(test: Node) -> bool:
    """A condition that does not decide whether there is a GPU to use, but for its presence."""
    text = test.as_string().lower()
    if "is_available" in text:
        return True
    return not any(word in text for word in ("cuda", "gpu", "device", "worker"))


# -- handles that are shared --------------------------------------------------------------------


@dataclass(frozen=True)
class SharedHandle(Spot):
    """A file that the constructor of a dataset opens and its samples read from."""

    name: str
    use: Node
    owner: Class

    @property
    def related(self) -> tuple[Related, ...]:
        return (self.facts.related(self.use, f"each sample of `{self.owner.name}` reads from it"),)


def shared_handles(loading: Loading) -> Iterator[SharedHandle]:
    facts = loading.facts
    datasets = Datasets(loading, loading.loaders, training=False)
    unused = _without_workers(datasets, loading)
    seen: set[int] = set()
    for module in facts.modules:
        for cls in module.classes:
            init = cls.methods.get("__init__")
            if init is None or not datasets.is_dataset(cls) or id(cls) in unused:
                continue
            for handle in _opened(facts, cls, init):
                if id(handle.node) in seen or not _is_kept_open(handle):
                    continue
                use = _use_of(datasets, handle)
                if use is not None:
                    seen.add(id(handle.node))
                    yield SharedHandle(facts, handle.node, handle.name, use, cls)


def _without_workers(datasets: Datasets, loading: Loading) -> set[int]:
    """Classes whose every loader is told to have no workers."""
    every: dict[int, set[int | None]] = {}
    for loader in loading.loaders:
        given = bool(loader.arguments.given("num_workers"))
        for cls in Datasets(loading, [loader], training=False).classes:
            every.setdefault(id(cls), set()).add(loader.workers if given else None)
    return {key for key, counts in every.items() if counts == {0}}


@dataclass(frozen=True)
class _Handle:
    facts: Facts
    node: Node
    name: str
    cls: Class
    init: Unit


def _opened(facts: Facts, cls: Class, init: Unit) -> Iterator[_Handle]:
    """``self.x = h5py.File(...)`` in the constructor or a method that it calls."""
    within = {id(init)} | {
        id(target)
        for call in init.calls
        for target in facts.graph.targets_of(call)
        if target.owner is not None and target.owner in facts.values.mro(cls)
    }
    for at in facts.values.mro(cls):
        for name, bindings in at.attributes.items():
            for unit, binding in bindings:
                call = _opener(binding.value)
                if call is None or binding.path or id(unit) not in within:
                    continue
                if facts.names(call) & HANDLES:
                    yield _Handle(facts, call, name, cls, init)


def _opener(value: Node | None) -> nodes.Call | None:
    """The call behind ``h5py.File(path)`` and ``h5py.File(path)["volumes"]``."""
    at = value
    while isinstance(at, nodes.Subscript) and isinstance(at.slice, nodes.Const):
        at = at.value
    return at if isinstance(at, nodes.Call) else None


def _is_kept_open(handle: _Handle) -> bool:
    """Neither closed nor given up again, nor opened anew by each worker."""
    facts, name = handle.facts, handle.name
    for at in facts.values.mro(handle.cls):
        for unit, binding in at.attributes.get(name, ()):
            if binding.value is not None and is_within(handle.node, binding.value):
                continue
            emptied = isinstance(binding.value, nodes.Const) and binding.value.value is None
            if emptied and binding.at < (handle.node.lineno, 0):
                continue
            if emptied or unit is not handle.init:
                return False
    for unit in (
        handle.init,
        *(u for c in facts.values.mro(handle.cls) for u in c.methods.values()),
    ):
        for call in unit.calls:
            if unit is handle.init and dotted(call.func) == f"{unit.self_name}.{name}.close":
                return False
        if unit.name == "__getstate__":
            return False
    return True


def _use_of(datasets: Datasets, handle: _Handle) -> Node | None:
    for spot in datasets.work_of(handle.cls):
        node = spot.node
        if not isinstance(node, nodes.Attribute) or node.attrname != handle.name:
            continue
        held_by = handle.facts.values.of(node.expr)
        if any(isinstance(o, Instance) and o.call is None for o in held_by):
            return node
    return None


# -- no workers ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Starved(Spot):
    """A loader without workers in front of a training loop on the GPU."""

    loader: Loader
    feed: Feed

    @property
    def related(self) -> tuple[Related, ...]:
        return (self.facts.related(self.feed.loop.node, "this loop waits for its batches"),)


def starved(epochs: Epochs, samples: Samples) -> Iterator[Starved]:
    seen: set[int] = set()
    for feed in epochs.feeds:
        loader = feed.loader
        file = epochs.facts.values.module_of(loader.node).source
        if id(loader.node) in seen or file.is_notebook or not loader.arguments.complete:
            continue
        if loader.arguments.given("num_workers") or not _is_on_gpu(epochs.facts, feed):
            continue
        if _has_work(epochs.facts, samples, loader):
            seen.add(id(loader.node))
            yield Starved(epochs.facts, loader.node, loader, feed)


def _is_on_gpu(facts: Facts, feed: Feed) -> bool:
    """Whether the loop moves something to a device that is not certainly the CPU."""
    for happening in feed.loop.calls:
        call = happening.call
        func = call.func
        if not isinstance(func, nodes.Attribute) or facts.graph.targets_of(call):
            continue
        if func.attrname == "cuda":
            return True
        if func.attrname == "to" and call.args:
            target = call.args[0]
            is_type = dotted(target).startswith("torch.") or dotted(target).endswith("dtype")
            if not is_type and not facts.tensors.on_host(call):
                return True
    return False


def _has_work(facts: Facts, samples: Samples, loader: Loader) -> bool:
    """Whether each sample is read from a file, or made when it is asked for."""
    for node in loader.arguments.given("dataset"):
        for origin in facts.origins(node):
            if isinstance(origin, Made) and origin.name.startswith("torchvision.datasets."):
                return origin.name.rpartition(".")[2] not in IN_MEMORY_DATASETS
    return any(
        spot.loader is not None
        and spot.loader.node is loader.node
        and isinstance(spot.node, nodes.Call)
        and bool(facts.names(spot.node) & SAMPLE_WORK)
        for spot in samples.datasets.work
    )
