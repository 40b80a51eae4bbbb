"""Layer 13, samples: what is costly or wrong when it is done for every sample."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from astroid import nodes

from ddp_lint.model.data_api import (
    DECODES,
    FOLDER_DATASETS,
    HEAVY_FUNCTIONS,
    HEAVY_TRANSFORMS,
    PIL_FILTERS,
    SCALED_FLAGS,
    SOUND,
)
from ddp_lint.model.datasets import Datasets, SampleSpot
from ddp_lint.model.flow import conditions, loops_around
from ddp_lint.model.modules import Unit
from ddp_lint.model.origins import Instance, Made, Member, Result
from ddp_lint.model.passing import argument_for
from ddp_lint.model.tree import (
    COMPREHENSIONS,
    Node,
    ancestors,
    dotted,
    is_within,
    source,
    statement,
    walk,
)

_HEADER = frozenset({"size", "width", "height", "format", "info", "mode", "shape", "verify"})
_KEPT_CHECKS = frozenset({"exists", "isfile", "is_file", "lexists"})
_CACHING = frozenset({"lru_cache", "cache", "cached_property", "memoize", "cached"})
_RANDOM = ("rand", "choice", "sample", "shuffle", "permutation")


@dataclass(frozen=True)
class Decode(SampleSpot):
    """An image or recording is decoded for a sample."""

    node: nodes.Call

    @property
    def is_sound(self) -> bool:
        assert isinstance(self.node, nodes.Call)
        return any(name.startswith(SOUND) for name in self.facts.names(self.node))

    @property
    def is_kept(self) -> bool:
        """Whether it is done once for each file and then kept, in memory or on disk."""
        if any(_CACHING & set(unit.decorator_names) for unit in self._units):
            return True
        return any(
            _asks_for_kept(condition.test, condition.holds, self.facts.values.unit_of(node))
            for node in self.ways
            for condition in conditions(node)
        )

    @property
    def _units(self) -> list[Unit]:
        return [*(unit for _, unit in self.chain), self.unit]

    @property
    def is_scaled(self) -> bool:
        """Whether it is decoded at a fraction of its size, or only its header is read."""
        call = self.node
        if any(SCALED_FLAGS in dotted(part) for a in call.args for part in walk(a)):
            return True
        if any(k.arg == "device" for k in call.keywords):
            return True
        parent = call.parent
        if isinstance(parent, nodes.Attribute) and parent.attrname in _HEADER:
            return True
        name = _assigned_name(call)
        return bool(name) and any(
            isinstance(c.func, nodes.Attribute)
            and c.func.attrname == "draft"
            and dotted(c.func.expr) == name
            for c in self.unit.calls
        )

    @cached_property
    def for_other_samples(self) -> Node | None:
        """The loop over samples chosen at random in which it is done, if there is one."""
        for level, node in enumerate(self.ways):
            unit = self.facts.values.unit_of(node)
            for loop, iterable in _around(node):
                if self._is_random(iterable, unit, level, 0):
                    return loop
        return None

    def _is_random(self, node: Node, unit: Unit, level: int, depth: int) -> bool:
        """Whether chance goes into a value, in a unit entered by the call before ``level``."""
        for part in walk(node):
            if isinstance(part, nodes.Call):
                last = dotted(part.func).rpartition(".")[2]
                if last.startswith(_RANDOM):
                    return True
            elif isinstance(part, nodes.Name) and depth < 3:
                for binding in unit.bindings.get(part.name, ()):
                    if binding.path == ("param",):
                        if self._is_passed_random(part.name, unit, level, depth):
                            return True
                    elif binding.value is not None and self._is_random(
                        binding.value, unit, level, depth + 1
                    ):
                        return True
        return False

    def _is_passed_random(self, name: str, unit: Unit, level: int, depth: int) -> bool:
        if level == 0:
            return False
        call, caller = self.chain[level - 1]
        given = argument_for(call, unit, name)
        return given is not None and self._is_random(given, caller, level - 1, depth + 1)


@dataclass(frozen=True)
class HeavyTransform(SampleSpot):
    """Every pixel of a sample is worked on, ``how`` says by what."""

    how: str


class Samples:
    def __init__(self, datasets: Datasets) -> None:
        self.datasets = datasets
        self.facts = datasets.facts

    @cached_property
    def _calls(self) -> list[tuple[nodes.Call, SampleSpot]]:
        work = self.datasets.work
        return [(spot.node, spot) for spot in work if isinstance(spot.node, nodes.Call)]

    @cached_property
    def decodes(self) -> list[Decode]:
        return [
            Decode(s.facts, call, s.unit, s.chain, s.owner, s.loader)
            for call, s in self._calls
            if self._is_decode(call)
        ]

    def _is_decode(self, call: nodes.Call) -> bool:
        if self.facts.names(call) & DECODES:
            return True
        if isinstance(call.func, nodes.Attribute) and call.func.attrname == "loader":
            return any(
                isinstance(o, Member)
                and isinstance(o.of, Instance)
                and self.facts.values.external_bases(o.of.cls) & FOLDER_DATASETS
                for o in self.facts.values.of(call.func)
            )
        return False

    @cached_property
    def many_transforms(self) -> list[HeavyTransform]:
        """Lists of transforms that each work on the same image."""
        found = []
        for spot in self.datasets.work:
            applied = self._applied_in_turn(spot.node)
            if applied is not None:
                found.append(_heavy(spot, source(applied)))
        return found

    def _applied_in_turn(self, node: Node) -> Node | None:
        """The list whose transforms ``node`` applies to one image, one after the other."""
        if isinstance(node, COMPREHENSIONS) and not isinstance(node, nodes.DictComp):
            first = node.generators[0]
            target, iterable = first.target, first.iter
            calls = [c for c in walk(node.elt) if isinstance(c, nodes.Call)]
        elif isinstance(node, nodes.For):
            target, iterable = node.target, node.iter
            calls = [c for s in node.body for c in walk(s) if isinstance(c, nodes.Call)]
        elif isinstance(node, nodes.Call) and dotted(node.func) == "map" and len(node.args) == 2:
            function, iterable = node.args
            named = function.args.args or [] if isinstance(function, nodes.Lambda) else []
            if not isinstance(function, nodes.Lambda) or len(named) != 1:
                return None
            target = named[0]
            calls = [c for c in walk(function.body) if isinstance(c, nodes.Call)]
        else:
            return None
        if not isinstance(target, nodes.AssignName):
            return None
        for call in calls:
            if dotted(call.func) != target.name or not call.args or _feeds_itself(call):
                continue
            if self._are_transforms(iterable):
                return iterable
        return None

    def _are_transforms(self, iterable: Node) -> bool:
        elements = self.datasets.loading.calls.elements_of(iterable)
        if len(elements) == 2 and isinstance(iterable, nodes.List | nodes.Tuple):
            return False
        for element in elements:
            for origin in self.datasets.facts.origins(element):
                if isinstance(origin, Made) and origin.name.startswith(
                    ("torchvision.transforms.", "albumentations.")
                ):
                    return True
        return False

    @cached_property
    def filters(self) -> list[HeavyTransform]:
        """Blurs, warps and the like."""
        found = []
        for call, spot in self._calls:
            if self._is_filter(call):
                found.append(_heavy(spot, source(call)))
        return found

    def _is_filter(self, call: nodes.Call) -> bool:
        if self.facts.names(call) & HEAVY_FUNCTIONS:
            return True
        func = call.func
        if isinstance(func, nodes.Attribute) and func.attrname == "filter" and call.args:
            return any(self.facts.made_by(call.args[0], PIL_FILTERS))
        called = self.facts.graph.origins(func)
        if not any(isinstance(o, Made | Result) for o in called):
            return False
        return any(
            isinstance(o, Made) and o.name in HEAVY_TRANSFORMS
            for o in self.datasets.transforms_in(func)
        )


def _heavy(spot: SampleSpot, how: str) -> HeavyTransform:
    return HeavyTransform(
        spot.facts, spot.node, spot.unit, spot.chain, spot.owner, spot.loader, how
    )


def _asks_for_kept(test: Node, holds: bool, unit: Unit) -> bool:
    """Whether the condition holds only where the result is not at hand yet."""
    match test:
        case nodes.UnaryOp(op="not", operand=operand):
            if not isinstance(operand, nodes.Compare | nodes.BoolOp):
                return holds and _looks_kept(operand)
            return _asks_for_kept(operand, not holds, unit)
        case nodes.BoolOp(values=values):
            return any(_asks_for_kept(value, holds, unit) for value in values)
        case nodes.Compare(left=left, ops=[(op, right)]):
            if op in ("in", "not in"):
                return holds == (op == "not in") and _is_store(right, unit)
            if isinstance(right, nodes.Const) and right.value is None:
                return holds == (op in ("is", "==")) and _is_store(left, unit)
            return False
    return not holds and _looks_kept(test)


def _looks_kept(node: Node) -> bool:
    """``os.path.exists(path)``, ``self.cached``, ``self.in_memory``."""
    if isinstance(node, nodes.Call):
        return dotted(node.func).rpartition(".")[2] in _KEPT_CHECKS
    name = dotted(node).lower()
    return "cache" in name or "memory" in name or "preload" in name


def _is_store(node: Node, unit: Unit) -> bool:
    """``self.cache``, ``self.images[i]``, ``self.cache.get(key)``, or a local from there."""
    at = node
    while isinstance(at, nodes.Subscript):
        at = at.value
    if isinstance(at, nodes.Call) and isinstance(at.func, nodes.Attribute):
        at = at.func.expr if at.func.attrname in ("get", "keys") else at
    if isinstance(at, nodes.Attribute):
        return True
    if not isinstance(at, nodes.Name):
        return False
    return any(
        isinstance(b.value, nodes.Subscript)
        or (isinstance(b.value, nodes.Call) and dotted(b.value.func).endswith(".get"))
        for b in unit.bindings.get(at.name, ())
        if b.value is not None and b.path == () and _is_store(b.value, unit)
    )


def _around(node: Node) -> Iterator[tuple[Node, Node]]:
    """``for`` loops and comprehensions around ``node`` in its unit, with what they go through."""
    for loop in loops_around(node):
        if isinstance(loop, nodes.For):
            yield loop, loop.iter
    for child, parent in ancestors(node):
        if isinstance(parent, COMPREHENSIONS) and not isinstance(child, nodes.Comprehension):
            for one in parent.generators:
                yield parent, one.iter


def _assigned_name(call: nodes.Call) -> str:
    at = statement(call)
    if isinstance(at, nodes.Assign) and isinstance(at.targets[0], nodes.AssignName):
        return str(at.targets[0].name) if at.value is call else ""
    if isinstance(at, nodes.With):
        for expression, target in at.items:
            if is_within(call, expression) and isinstance(target, nodes.AssignName):
                return str(target.name)
    return ""


def _feeds_itself(call: nodes.Call) -> bool:
    """``image = t(image)``: one after the other, a pipeline."""
    at = statement(call)
    if not isinstance(at, nodes.Assign):
        return False
    given = {n.name for a in call.args for n in walk(a) if isinstance(n, nodes.Name)}
    return any(
        isinstance(n, nodes.AssignName) and n.name in given for t in at.targets for n in walk(t)
    )
