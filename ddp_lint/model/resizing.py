"""Layer 13, resizing: what is done to the size of an image that is decoded for a sample."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from astroid import nodes

from ddp_lint.model.datasets import Chain, Datasets, SampleSpot
from ddp_lint.model.flow import Condition, conditions
from ddp_lint.model.modules import Unit
from ddp_lint.model.origins import Expression, Made, Origin, inner
from ddp_lint.model.passing import argument_for
from ddp_lint.model.sample_flow import SampleFlow, Use
from ddp_lint.model.tree import Node, dotted, elements, position, walk

#: Calls that change the size of an image, and calls that cut a piece out of it.
_RESIZING = re.compile(
    r"resize|rescale|thumbnail|letter_?box|interpolate|warp_?(affine|perspective)|zoom|MaxSize"
    r"|RandomSized|RandomScale|RandomShortestSize|ScaleJitter", re.I
)  # fmt: skip
_CROPPING = re.compile(r"crop", re.I)
#: Transforms that draw the size that they give, and containers that draw a transform.
_SIZE_DRAWN = frozenset(
    {"RandomResize", "RandomShortestSize", "ScaleJitter", "RandomScale", "ResizeShortestEdge"}
)
_DRAWING = re.compile(r"RandomChoice|RandomApply|OneOf|SomeOf")
_DRAWS = ("rand", "choice", "sample", "integers", "uniform", "normal", "shuffle", "perm", "gauss")
_SIZE_NAMES = frozenset({"size", "height", "dsize"})
#: Up to here the files of most data sets are larger.
SMALL = 256
_DEEPEST = 5

#: What is done first; "" where nothing is to be seen.  "cut": pieces at places that are the same
#: in every epoch; "crop": at random.  "several sizes": drawn anew for each sample.
Change = Literal["resize", "cut and resize", "cut", "crop", "crop and resize", "several sizes", ""]


@dataclass(frozen=True)
class _Move:
    """One change of size: ``drawn`` by chance, and ``done`` on all samples, some, or by chance."""

    kind: Literal["resize", "crop"]
    drawn: bool
    done: Literal["always", "perhaps", "by chance"]
    sizes: tuple[int, ...] = ()


class Resizing:
    """What becomes of the size of one image, by what it goes into."""

    def __init__(self, datasets: Datasets, spot: SampleSpot, followed: SampleFlow) -> None:
        self.datasets = datasets
        self.facts = datasets.facts
        self.followed = followed
        #: What holds where the image is decoded is no choice between images.
        self._given = {(id(c.test), c.holds) for way in spot.ways for c in conditions(way)}

    @cached_property
    def change(self) -> Change:
        """What is done first; where a crop follows, a resize by chance does not count."""
        sure = [move for move in self._moves if move.done == "always"]
        if not sure:
            return self._perhaps
        first, *later = sure
        before = self._moves[: self._moves.index(first) + 1]
        if any(move.kind == "resize" and move.drawn for move in before):
            return "several sizes"
        if first.kind == "resize":
            return "resize"
        drawn = first.drawn
        for move in later:
            if move.kind == "resize" and not drawn:
                return "several sizes" if move.drawn else "cut and resize"
            if move.kind == "resize":
                return "crop and resize"
            drawn = drawn or move.drawn
        return "crop" if drawn else "cut"

    @property
    def _perhaps(self) -> Change:
        if any(move.kind == "resize" and move.drawn for move in self._moves):
            return "several sizes"
        kinds = [move.kind for move in self._moves if move.done != "by chance"]
        if any(move.kind == "crop" and move.drawn for move in self._moves):
            return "crop and resize" if "resize" in kinds else "crop"
        if "resize" in kinds:
            return "resize" if kinds[0] == "resize" else "cut and resize"
        if any(move.kind == "resize" for move in self._moves):
            return "several sizes"
        return "cut" if self._moves else ""

    @property
    def is_small(self) -> bool:
        """Whether all sizes that it is given are written down, and small."""
        sizes = [move.sizes for move in self._moves if move.kind == "resize"]
        return bool(sizes) and all(one and max(one) <= SMALL for one in sizes)

    # -- what is done -----------------------------------------------------------------------

    @cached_property
    def _moves(self) -> list[_Move]:
        return [move for use in self.followed.uses for move in self._of(use)]

    def _of(self, use: Use) -> Iterator[_Move]:
        node = use.node
        if isinstance(node, nodes.Subscript):
            if _is_piece(node):
                yield _Move("crop", self.is_drawn(node.slice, use.chain), self._done(use))
            return
        # Of a function of the project not its name tells, but what it does, which comes next.
        if not isinstance(node, nodes.Call) or self.facts.graph.targets_of(node):
            return
        name = str(getattr(node.func, "attrname", getattr(node.func, "name", "")))
        given = [*node.args, *(k.value for k in node.keywords)]
        if _RESIZING.search(name):
            drawn = any(self.is_drawn(one, use.chain) for one in given)
            yield _Move("resize", drawn, self._done(use), self._sizes(node))
        elif _CROPPING.search(name):
            drawn = "rand" in name.lower() or any(self.is_drawn(one, use.chain) for one in given)
            yield _Move("crop", drawn, self._done(use))
        else:
            yield from self._of_transforms(node, use)

    def _of_transforms(self, call: nodes.Call, use: Use) -> Iterator[_Move]:
        """What the transforms do that a call applies, in the order in which they are written."""
        made = [o for o in self.datasets.transforms_in(call.func) if isinstance(o, Made)]
        names = {origin: origin.name.rpartition(".")[2] for origin in made}
        chosen = {
            inside
            for origin in made
            if _DRAWING.search(names[origin])
            for given in (*origin.call.args, *(k.value for k in origin.call.keywords))
            for one in self._elements(given)
            for inside in self.datasets.transforms_in(one)
        }
        for origin in sorted(made, key=lambda one: position(one.call)):
            name = names[origin]
            if _RESIZING.search(name):
                drawn = origin in chosen or name in _SIZE_DRAWN
                yield _Move("resize", drawn, self._done(use), self._sizes(origin.call))
            elif _CROPPING.search(name):
                yield _Move("crop", "Random" in name, self._done(use))

    def _elements(self, node: Node) -> list[Node]:
        return self.datasets.loading.calls.elements_of(node) or [node]

    def _done(self, use: Use) -> Literal["always", "perhaps", "by chance"]:
        found: Literal["always", "perhaps"] = "always"
        for at, way in enumerate(use.ways):
            for condition in conditions(way):
                if (id(condition.test), condition.holds) in self._given:
                    continue
                if self.is_drawn(condition.test, use.chain[:at]):
                    return "by chance"
                if _is_choice(condition, way):
                    found = "perhaps"
        return found

    def _sizes(self, call: nodes.Call) -> tuple[int, ...]:
        """The size that is asked for, where it is written down."""
        given = [k.value for k in call.keywords if k.arg in _SIZE_NAMES] or list(call.args)
        for one in given[:2]:
            parts = elements(one) if isinstance(one, nodes.Tuple | nodes.List) else [one]
            numbers = [number for part in parts for number in self._numbers(part)]
            if numbers:
                return tuple(numbers)
        return ()

    def _numbers(self, node: Node) -> list[int]:
        values = [
            origin.node.value
            for origin in self.facts.origins(node)
            if isinstance(origin, Expression) and isinstance(origin.node, nodes.Const)
        ]
        return [v for v in values if isinstance(v, int) and not isinstance(v, bool)]

    # -- chance -----------------------------------------------------------------------------

    def is_drawn(self, node: Node, chain: Chain) -> bool:
        """Whether a value is drawn by chance, also by who passes it on the way of ``chain``."""
        return self._draws(node, self.facts.values.unit_of(node), chain, 0, set())

    def _draws(
        self, node: Node, unit: Unit, chain: Chain, depth: int,
        seen: set[tuple[int, str]],
    ) -> bool:  # fmt: skip
        for part in self._walk(node):
            match part:
                case nodes.Call(func=func):
                    name = str(getattr(func, "attrname", getattr(func, "name", "")))
                    if name.startswith(_DRAWS) or "random" in dotted(func).lower():
                        return True
                    for target in self.facts.graph.targets_of(part) if depth < _DEEPEST else ():
                        inside = (*chain, (part, unit))
                        if any(
                            self._draws(value, target, inside, depth + 1, seen)
                            for value in target.returned
                        ):
                            return True
                case nodes.Attribute() if dotted(part).startswith(f"{unit.self_name}."):
                    if any(map(_is_draw, self.facts.origins(part))):
                        return True
                case nodes.Name(name=name) if (id(unit), name) not in seen:
                    seen.add((id(unit), name))
                    if self._name_draws(name, unit, chain, depth, seen):
                        return True
        return False

    def _walk(self, node: Node) -> Iterator[Node]:
        """All of an expression but the image itself: which file is read may be drawn as well."""
        if id(node) not in self.followed.carriers:
            yield node
            for child in node.get_children():
                yield from self._walk(child)

    def _name_draws(
        self, name: str, unit: Unit, chain: Chain, depth: int,
        seen: set[tuple[int, str]],
    ) -> bool:  # fmt: skip
        if depth > _DEEPEST:
            return False
        for binding in unit.bindings.get(name, ()):
            if binding.path == ("param",):
                if not chain or name == unit.self_name:
                    continue
                call, caller = chain[-1]
                given = argument_for(call, unit, name)
                if given is not None and self._draws(given, caller, chain[:-1], depth + 1, seen):
                    return True
            elif binding.value is not None and self._draws(
                binding.value, unit, chain, depth + 1, seen
            ):
                return True
        return False


def _is_draw(origin: Origin) -> bool:
    return any(
        isinstance(part, Made) and part.name.rpartition(".")[2].startswith(_DRAWS)
        for part in inner(origin)
    )


def _is_choice(condition: Condition, node: Node) -> bool:
    """A condition that some samples meet; not ``if self.transform: self.transform(image)``, nor
    ``if "mask" in sample``."""
    match condition.test:
        case nodes.Compare(left=nodes.Const(value=str()), ops=[("in" | "not in", _)]):
            return False
    if condition.exit is not None:
        return False
    called = dotted(node.func) if isinstance(node, nodes.Call) else ""
    return not called or all(dotted(part) != called for part in walk(condition.test))


def _is_piece(node: nodes.Subscript) -> bool:
    """``image[y:y + h, x:x + w]``."""
    if not isinstance(node.slice, nodes.Tuple):
        return False
    cuts = [one for one in elements(node.slice) if isinstance(one, nodes.Slice)]
    bounded = [one for one in cuts if one.lower is not None and one.upper is not None]
    return len(bounded) >= 2 and not isinstance(node.parent, nodes.AssignAttr)
