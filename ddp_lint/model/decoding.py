"""Layer 13, decoding: images and recordings decoded for a sample, and where they come from."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from astroid import nodes

from ddp_lint.finding import Related
from ddp_lint.model.data_api import (
    ENCODERS,
    MEASURING_FLAGS,
    SCALED_FLAGS,
    SOUND,
    STORES,
    WRAPPED_BYTES,
)
from ddp_lint.model.datasets import Datasets, SampleSpot
from ddp_lint.model.facts import Facts
from ddp_lint.model.flow import Condition, conditions, exclusive
from ddp_lint.model.modules import Binding, Unit
from ddp_lint.model.origins import Made, Origin, inner
from ddp_lint.model.picking import Picking
from ddp_lint.model.tree import Node, ancestors, dotted, elements, is_within, statement, walk

_HEADER = frozenset({"size", "width", "height", "format", "info", "mode", "shape", "verify"})
_KEPT_CHECKS = frozenset({"exists", "isfile", "is_file", "lexists"})
#: Calls that change the size of an image, and calls that cut a piece out of it.
_RESIZING = re.compile(
    r"resize|rescale|thumbnail|letter_?box|interpolate|warp_?(affine|perspective)|zoom|MaxSize"
    r"|RandomSized", re.I
)  # fmt: skip
_CROPPING = re.compile(r"crop", re.I)
_DEEPEST = 4

#: What is done to the size of an image; "" where nothing is to be seen.
Change = Literal["resize", "crop", ""]


@dataclass(frozen=True)
class Decode(SampleSpot):
    """An image or recording is decoded for a sample; ``later`` is what its dataset does then."""

    node: nodes.Call
    datasets: Datasets = field(repr=False)
    later: tuple[Node, ...] = field(repr=False)
    beside: tuple[Node, ...] = ()

    @property
    def related(self) -> tuple[Related, ...]:
        others = (self.facts.related(node, "or here, in another arm") for node in self.beside)
        return (*super().related, *others)

    def is_beside(self, other: Decode) -> bool:
        """Whether they are arms of one ``if``, so that a sample runs one of them."""
        head = _head_of_chain(self.node)
        same = head is not None and head is _head_of_chain(other.node)
        return same and exclusive(self.node, other.node)

    @property
    def is_repeated(self) -> bool:
        """Whether it is done for one file of each sample again in every epoch."""
        once = self.is_kept or self.is_scaled or self.is_from_store
        return not once and not self.for_other_samples

    @property
    def is_sound(self) -> bool:
        return any(name.startswith(SOUND) for name in self.facts.names(self.node))

    @property
    def is_kept(self) -> bool:
        """Whether it is done once for each file and then kept, in memory or on disk."""
        if any(unit.is_cached for unit in self._units):
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

    @property
    def is_from_store(self) -> bool:
        """Whether the bytes are an entry of an LMDB or HDF5 that was made for the purpose."""
        return _all_made_by(STORES, self.facts, self.node)

    @cached_property
    def for_other_samples(self) -> Node | None:
        """The loop over samples chosen at random in which it is done, if there is one."""
        return Picking(self.facts, self.chain, self.node).loop

    @property
    def is_measured(self) -> bool:
        """Whether the pixels are numbers of another kind: a depth, a flow."""
        parts = (dotted(part) for argument in self.node.args for part in walk(argument))
        return any(part.endswith(MEASURING_FLAGS) for part in parts)

    @cached_property
    def change(self) -> Change:
        """What is done to its size first, as far as it is to be seen; by chance does not count
        where a crop follows."""
        perhaps: Change = ""
        for node in self.later:
            change = self._change(node)
            if change and not any(_is_choice(condition, node) for condition in conditions(node)):
                return change
            perhaps = "crop" if "crop" in (perhaps, change) else perhaps or change
        return perhaps

    def _change(self, node: Node) -> Change:
        if isinstance(node, nodes.Subscript):
            return "crop" if _is_piece(node) else ""
        # Of a function of the project not its name tells, but what it does, which comes next.
        if not isinstance(node, nodes.Call) or self.facts.graph.targets_of(node):
            return ""
        names = [str(getattr(node.func, "attrname", getattr(node.func, "name", "")))]
        names += [o.name for o in self.datasets.transforms_in(node.func) if isinstance(o, Made)]
        if any(_RESIZING.search(name.rpartition(".")[2]) for name in names):
            return "resize"
        return "crop" if any(_CROPPING.search(name.rpartition(".")[2]) for name in names) else ""


def _is_choice(condition: Condition, node: Node) -> bool:
    """A condition that some samples meet; not ``if self.transform: self.transform(image)``."""
    if condition.exit is not None:
        return False
    called = dotted(node.func) if isinstance(node, nodes.Call) else ""
    return not called or all(dotted(part) != called for part in walk(condition.test))


def _head_of_chain(node: Node) -> nodes.If | None:
    """The ``if`` of the innermost ``if ... elif ... else`` around a node."""
    at = next((parent for _, parent in ancestors(node) if isinstance(parent, nodes.If)), None)
    while at is not None and isinstance(at.parent, nodes.If) and at.parent.orelse == [at]:
        at = at.parent
    return at


def decodes_from_memory(facts: Facts, call: nodes.Call) -> bool:
    """Whether what is decoded was encoded by the program itself, to spoil it."""
    return _all_made_by(ENCODERS, facts, call)


def _all_made_by(makers: frozenset[str], facts: Facts, decode: nodes.Call) -> bool:
    given = [*decode.args[:1], *(k.value for k in decode.keywords)][:1]
    found = [origin for node in given for origin in _sources(facts, node, 0)]
    return bool(found) and all(isinstance(o, Made) and o.name in makers for o in found)


def _sources(facts: Facts, node: Node, depth: int) -> Iterator[Origin]:
    """Where bytes come from, seen through what only wraps them."""
    for origin in facts.origins(node):
        base = [*inner(origin)][-1]
        wraps = isinstance(base, Made) and base.name in WRAPPED_BYTES and depth < _DEEPEST
        if wraps and isinstance(base, Made) and base.call.args:
            yield from _sources(facts, base.call.args[0], depth + 1)
        elif wraps and isinstance(base, Made) and (save := _filling(facts, base)) is not None:
            yield Made("PIL.Image.Image.save", save)
        else:
            yield base


def _filling(facts: Facts, buffer: Made) -> nodes.Call | None:
    """``image.save(buffer)``: the call that encodes an image into an empty buffer."""
    for call in facts.values.unit_of(buffer.call).calls:
        if not isinstance(call.func, nodes.Attribute) or call.func.attrname != "save":
            continue
        if any(buffer in facts.origins(one) for one in call.args[:1]):
            return call
    return None


def _is_piece(node: nodes.Subscript) -> bool:
    """``image[y:y + h, x:x + w]``."""
    if not isinstance(node.slice, nodes.Tuple):
        return False
    cuts = [one for one in elements(node.slice) if isinstance(one, nodes.Slice)]
    bounded = [one for one in cuts if one.lower is not None and one.upper is not None]
    return len(bounded) >= 2 and not isinstance(node.parent, nodes.AssignAttr)


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
        return "caching" not in at.attrname  # what is being done, not what was kept
    if not isinstance(at, nodes.Name):
        return False
    return any(
        isinstance(b.value, nodes.Subscript)
        or (isinstance(b.value, nodes.Call) and dotted(b.value.func).endswith(".get"))
        for b in unit.bindings.get(at.name, ())
        if b.value is not None and _is_part(b) and _is_store(b.value, unit)
    )


def _is_part(binding: Binding) -> bool:
    """``image = self.rows[i]``, ``path, image = self.rows[i]``."""
    return all(isinstance(step, int) for step in binding.path)


def _assigned_name(call: nodes.Call) -> str:
    at = statement(call)
    if isinstance(at, nodes.Assign) and isinstance(at.targets[0], nodes.AssignName):
        return str(at.targets[0].name) if at.value is call else ""
    if isinstance(at, nodes.With):
        for expression, target in at.items:
            if is_within(call, expression) and isinstance(target, nodes.AssignName):
                return str(target.name)
    return ""
