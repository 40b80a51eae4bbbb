"""Layer 13, samples: what is costly or wrong when it is done for every sample."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from astroid import nodes

from ddp_lint.model.data_api import (
    DECODES,
    FOLDER_DATASETS,
    HEAVY_FUNCTIONS,
    HEAVY_TRANSFORMS,
    PIL_FILTERS,
    SELDOM,
)
from ddp_lint.model.datasets import Datasets, SampleSpot
from ddp_lint.model.decoding import Decode, decodes_from_memory
from ddp_lint.model.origins import Instance, Made, Member, Result
from ddp_lint.model.tree import (
    COMPREHENSIONS,
    Node,
    dotted,
    source,
    statement,
    walk,
)


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
            Decode(s.facts, s.node, s.unit, s.chain, s.owner, s.loader, self.datasets)
            for s in self.datasets.work
            if isinstance(s.node, nodes.Call)
            and self._is_decode(s.node)
            and not decodes_from_memory(self.facts, s.node)
        ]

    @cached_property
    def repeated_decodes(self) -> list[Decode]:
        """Those of one file for each sample in every epoch, one for all arms of an ``if``."""
        found: list[Decode] = []
        for decode in self.decodes:
            if not decode.is_repeated:
                continue
            at = next((i for i, one in enumerate(found) if one.is_beside(decode)), None)
            if at is None:
                found.append(decode)
            else:
                found[at] = replace(found[at], beside=(*found[at].beside, decode.node))
        return found

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
            isinstance(o, Made) and o.name in HEAVY_TRANSFORMS and not _is_seldom(o.call)
            for o in self.datasets.transforms_in(func)
        )


def _heavy(spot: SampleSpot, how: str) -> HeavyTransform:
    return HeavyTransform(
        spot.facts, spot.node, spot.unit, spot.chain, spot.owner, spot.loader, how
    )


def _is_seldom(transform: nodes.Call) -> bool:
    """``MedianBlur(p=0.01)``: nearly every sample passes untouched."""
    chances = (k.value.value for k in transform.keywords
               if k.arg == "p" and isinstance(k.value, nodes.Const))  # fmt: skip
    return any(isinstance(p, int | float) and p < SELDOM for p in chances)


def _feeds_itself(call: nodes.Call) -> bool:
    """``image = t(image)``: one after the other, a pipeline."""
    at = statement(call)
    if not isinstance(at, nodes.Assign):
        return False
    given = {n.name for a in call.args for n in walk(a) if isinstance(n, nodes.Name)}
    return any(
        isinstance(n, nodes.AssignName) and n.name in given for t in at.targets for n in walk(t)
    )
