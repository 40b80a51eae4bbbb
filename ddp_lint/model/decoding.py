"""Layer 13, decoding: images and recordings decoded for a sample, and where they come from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from astroid import nodes

from ddp_lint.finding import Related
from ddp_lint.model.data_api import (
    COMPRESSED_SOUND,
    ENCODERS,
    MEASURING_FLAGS,
    SCALED_FLAGS,
    SOUND,
    STORES,
    WHOLE_IMAGES,
    WIDE_INTEGERS,
    WRAPPED_BYTES,
)
from ddp_lint.model.datasets import Datasets, SampleSpot
from ddp_lint.model.endings import endings
from ddp_lint.model.facts import Facts
from ddp_lint.model.flow import conditions, exclusive
from ddp_lint.model.modules import Binding, Unit
from ddp_lint.model.origins import Made, Origin, inner
from ddp_lint.model.picking import Picking
from ddp_lint.model.resizing import Change, Resizing
from ddp_lint.model.sample_flow import SampleFlow
from ddp_lint.model.tree import Node, ancestors, dotted, is_within, statement, walk

_HEADER = frozenset({"size", "width", "height", "format", "info", "mode", "shape", "verify"})
_KEPT_CHECKS = frozenset({"exists", "isfile", "is_file", "lexists"})
_DEEPEST = 4

#: What may be done once before training, with the change of size that it stands in for; "" is
#: nothing.
Help = Literal[
    "decode", "resample", "decode and resample", "keep pixels", "keep less", "resize",
    "resize or scale", "cut", "cut and resize", "crop", "crop and resize", ""
]  # fmt: skip


@dataclass(frozen=True)
class Decode(SampleSpot):
    """An image or recording is decoded for a sample."""

    node: nodes.Call
    datasets: Datasets = field(repr=False)
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
        made_by = _made_by(self.facts, self.node)
        # A reader of somebody's own is called after it: ``LMDBReader``.
        return bool(made_by) and all(
            name in STORES or "lmdb" in name.rpartition(".")[2].lower() for name in made_by
        )

    @cached_property
    def for_other_samples(self) -> Node | None:
        """The loop over samples chosen at random in which it is done, if there is one."""
        return Picking(self.facts, self.chain, self.node).loop

    @cached_property
    def is_one_of_several(self) -> bool:
        """Whether there are more images like this one than samples: the frames of a video, of
        which a sample takes some, or one by chance."""
        if any(
            getattr(use.node.func, "attrname", "") == "seek"
            for use in self._followed.uses
            if isinstance(use.node, nodes.Call)
        ):
            return True  # the file itself holds several
        if ENCODERS.isdisjoint(_made_by(self.facts, self.node)) and any(
            self._resizing.is_drawn(one, self.chain) for one in self._given
        ):
            return True
        return Picking(self.facts, self.chain, self.node).is_one_of_several

    # -- the file ---------------------------------------------------------------------------

    @property
    def _given(self) -> list[Node]:
        """The file, or the bytes of one; none, where nothing is passed."""
        return _first_argument(self.node)

    @cached_property
    def endings(self) -> frozenset[str]:
        """How the names of the files end; "" is one that is not known."""
        found = [endings(self.datasets.loading, one) for one in self._given]
        return found[0] if found else frozenset({""})

    @property
    def is_compressed_sound(self) -> bool:
        return self.endings <= COMPRESSED_SOUND

    @property
    def is_plain_sound(self) -> bool:
        """Whether there is nothing to decode, only to read."""
        return self.endings == {".wav"}

    # -- what becomes of it -----------------------------------------------------------------

    @cached_property
    def _followed(self) -> SampleFlow:
        return SampleFlow(self.datasets, self)

    @cached_property
    def _resizing(self) -> Resizing:
        return Resizing(self.datasets, self, self._followed)

    @property
    def change(self) -> Change:
        """What is done to its size first, as far as it is to be seen."""
        return self._resizing.change

    @property
    def is_made_small(self) -> bool:
        return self._resizing.is_small

    @property
    def may_be_scaled(self) -> bool:
        """Whether a decoder may give it at a fraction of its size: those of PNG do not."""
        return not self.endings & WHOLE_IMAGES and not self.is_measured

    @property
    def is_passed_on(self) -> bool:
        """Whether it goes into something that cannot be followed."""
        followed = self._followed
        return followed.is_given_away or any(use.is_unknown for use in followed.uses)

    @cached_property
    def is_measured(self) -> bool:
        """Whether the pixels are numbers of another kind: a depth, a flow, a map of labels."""
        parts = (dotted(part) for argument in self.node.args for part in walk(argument))
        if any(part.endswith(MEASURING_FLAGS) for part in parts):
            return True
        return any(use.is_itself and _counts(use.node) for use in self._followed.uses)

    @property
    def is_resampled(self) -> bool:
        """Whether the rate of a recording is changed for each sample."""
        names = self.facts.names(self.node)
        if any(name.startswith("librosa.") for name in names):
            rate = next((k.value for k in self.node.keywords if k.arg == "sr"), None)
            return not (isinstance(rate, nodes.Const) and rate.value is None)
        return any(
            isinstance(use.node, nodes.Call)
            and any(
                "resample" in name.lower()
                for name in (
                    dotted(use.node.func).rpartition(".")[2],
                    *(o.name for o in self.facts.origins(use.node.func) if isinstance(o, Made)),
                )
            )
            for use in self._followed.uses
        )

    # -- what helps -------------------------------------------------------------------------

    @property
    def help(self) -> Help:
        """What may be done once, before training; "" where nothing is seen that would pay."""
        return self._help_for_sound if self.is_sound else self._help_for_image

    @property
    def _help_for_sound(self) -> Help:
        if self.is_resampled:
            return "resample" if self.is_plain_sound else "decode and resample"
        return "decode" if self.is_compressed_sound else ""

    @property
    def _help_for_image(self) -> Help:
        change = self.change
        if change == "several sizes":
            return ""  # there is no size to keep it at
        if self.is_one_of_several and change not in ("resize", "cut and resize"):
            return ""  # the pixels of all frames of all videos are more than a disk holds
        if self.is_measured:
            return "keep pixels"
        match change:
            case "":
                return "keep less" if self.is_passed_on else "keep pixels"
            case "resize":
                return "resize or scale" if self.is_made_small and self.may_be_scaled else "resize"
            case _:
                return change


def _counts(node: Node) -> bool:
    """Whether pixels are taken for whole numbers: wide ones, or such that are compared."""
    match node:
        case nodes.Call(func=func):
            name = str(getattr(func, "attrname", getattr(func, "name", "")))
            given = [*node.args, *(k.value for k in node.keywords)]
            types = {dotted(one).rpartition(".")[2] for one in given}
            types |= {str(one.value) for one in given if isinstance(one, nodes.Const)}
            asked = name in ("astype", "to", "type") or any(
                k.arg == "dtype" for k in node.keywords
            )
            wide = bool(types & WIDE_INTEGERS) or (asked and "int" in types)
            return wide or name in WIDE_INTEGERS or name in ("LongTensor", "IntTensor")
        case nodes.BinOp(op="//" | "<<" | ">>" | "&" | "|"):
            return True
        case nodes.Compare(ops=[("==" | "!=", right)]):
            return not isinstance(right, nodes.Const) or isinstance(right.value, int)
    return False


def _head_of_chain(node: Node) -> nodes.If | None:
    """The ``if`` of the innermost ``if ... elif ... else`` around a node."""
    at = next((parent for _, parent in ancestors(node) if isinstance(parent, nodes.If)), None)
    while at is not None and isinstance(at.parent, nodes.If) and at.parent.orelse == [at]:
        at = at.parent
    return at


def decodes_from_memory(facts: Facts, call: nodes.Call) -> bool:
    """Whether what is decoded was encoded by the program itself, to spoil it."""
    made_by = _made_by(facts, call)
    return bool(made_by) and ENCODERS.issuperset(made_by)


def _made_by(facts: Facts, decode: nodes.Call) -> list[str]:
    """What has made the bytes, by name; "" is something unknown."""
    found = [o for node in _first_argument(decode) for o in _sources(facts, node, 0)]
    return [o.name if isinstance(o, Made) else "" for o in found]


def _first_argument(call: nodes.Call) -> list[Node]:
    return [*call.args[:1], *(k.value for k in call.keywords)][:1]


def _sources(facts: Facts, node: Node, depth: int) -> Iterator[Origin]:
    """Where bytes come from, seen through what only wraps them."""
    for origin in facts.origins(node):
        base = [*inner(origin)][-1]
        wraps = isinstance(base, Made) and base.name in WRAPPED_BYTES and depth < _DEEPEST
        if wraps and isinstance(base, Made) and base.call.args:
            yield from _sources(facts, base.call.args[0], depth + 1)
        elif wraps and isinstance(base, Made):
            filled = list(_filling(facts, base, depth))
            yield from filled or [base]
        else:
            yield base


def _filling(facts: Facts, buffer: Made, depth: int) -> Iterator[Origin]:
    """What comes into an empty buffer: ``image.save(buffer)``, ``buffer.write(content)``."""
    for call in facts.values.unit_of(buffer.call).calls:
        func = call.func
        if not isinstance(func, nodes.Attribute) or not call.args:
            continue
        if func.attrname == "save" and buffer in facts.origins(call.args[0]):
            yield Made("PIL.Image.Image.save", call)
        elif func.attrname == "write" and buffer in facts.origins(func.expr):
            yield from _sources(facts, call.args[0], depth + 1)


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
