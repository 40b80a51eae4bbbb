"""Subject: autocast regions: what runs inside of them, and in which type."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from astroid import nodes

from ddp_lint.finding import Edit, Fix, Related
from ddp_lint.model.facts import Facts, Spot
from ddp_lint.model.flow import with_items
from ddp_lint.model.frames import Frame, origins_in, resolve
from ddp_lint.model.gradients import Training, Update, UpdateSpot
from ddp_lint.model.origins import Api, Expression, Made, Member, Origin, Param, Result, Unknown
from ddp_lint.model.remarks import remark_above
from ddp_lint.model.scaling import scale_call
from ddp_lint.model.torch_api import AUTOCASTS
from ddp_lint.model.tree import LOOPS, Node, ancestors, position, source, statement, walk
from ddp_lint.model.ways import Event

#: What a context manager does to autocast; None for one that has nothing to do with it.
State = Literal["on", "off", "unknown"] | None

_PLAIN_CONTEXTS = frozenset({"contextlib.nullcontext", "contextlib.suppress"})


class Regions:
    """The autocast regions of one program."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts

    def state(self, context: Node, frame: Frame) -> State:
        """What a context manager switches, on every way that it may have come about."""
        answers = {self._state(origin) for origin in origins_in(self.facts.graph, context, frame)}
        if "unknown" in answers:
            return "unknown"
        if "on" in answers:
            return "on"
        return "off" if answers == {"off"} else None

    def _state(self, origin: Origin) -> State:
        match origin:
            case Made(name=name, call=call) if name in AUTOCASTS:
                return "off" if _is_disabled(name, call) else "on"
            case Result(of=Member(name="autocast", of=owner)):
                return "on" if self.facts.roles.role(owner) in ("accelerator", "fabric") else None
            case Param() | Unknown() | Expression():
                return "unknown"
        return None

    def casts(self, unit_nodes: list[tuple[Node, Frame]]) -> Iterator[nodes.Call]:
        """The ``autocast(...)`` calls that made the given contexts, but for those switched off."""
        for context, frame in unit_nodes:
            for origin in origins_in(self.facts.graph, context, frame):
                if not isinstance(origin, Made) or origin.name not in AUTOCASTS:
                    continue
                if not _is_disabled(origin.name, origin.call):
                    yield origin.call

    def dtype(self, call: nodes.Call) -> str | None:
        """The type that an autocast region computes in, where that is certain."""
        given = [k.value for k in call.keywords if k.arg in ("dtype", "fast_dtype")]
        if any(k.arg is None for k in call.keywords):
            return None
        if not given:
            modern = not any(
                n.startswith(("torch.cuda.amp", "torch.cpu.amp")) for n in self.facts.names(call)
            )
            given = call.args[1:2]
            if not given:
                return _default_dtype(call) if modern else "torch.float16"
        names = {o.name if isinstance(o, Api) else None for o in self.facts.origins(given[0])}
        return names.pop() if len(names) == 1 else None


def _default_dtype(call: nodes.Call) -> str | None:
    kinds = [*call.args[:1], *(k.value for k in call.keywords if k.arg == "device_type")]
    if kinds and isinstance(kinds[0], nodes.Const):
        return "torch.float16" if str(kinds[0].value).startswith("cuda") else "torch.bfloat16"
    return None


def _is_disabled(name: str, call: nodes.Call) -> bool:
    given = [k.value for k in call.keywords if k.arg == "enabled"]
    if name.startswith(("torch.cuda.amp.", "torch.cpu.amp.")):
        given += call.args[:1]
    return any(isinstance(value, nodes.Const) and value.value is False for value in given)


# -- backward inside --------------------------------------------------------------------------


@dataclass(frozen=True)
class CastBackward(UpdateSpot):
    """A backward pass within an autocast region."""

    region: nodes.With
    context: Node

    @property
    def others_text(self) -> str:
        """What else the same ``with`` enters: ``no_sync()``, which has to stay around."""
        return ", ".join(
            source(other) for other, _ in self.region.items if other is not self.context
        )

    @property
    def chain(self) -> tuple[Related, ...]:
        return (*super().chain, self.facts.related(self.region, "the autocast region"))

    @property
    def can_be_dedented(self) -> bool:
        """Whether the region ends with the step: no loop lies between it and the backward."""
        for _, parent in ancestors(self.node):
            if parent is self.region:
                return True
            if isinstance(parent, LOOPS):
                return False
        return False

    @property
    def fix(self) -> Fix | None:
        """Dedent the backward and what follows it in the region."""
        first = statement(self.node)
        body = self.region.body
        if first.parent is not self.region or first is body[0] or len(self.region.items) != 1:
            return None
        edits = _dedented(self.facts, self.region, body[body.index(first) :])
        return (
            Fix("Take the backward out of the autocast region", edits, safe=False)
            if edits
            else None
        )


def _dedented(facts: Facts, region: nodes.With, body: list[Node]) -> tuple[Edit, ...]:
    file = facts.values.module_of(region).source
    first, last = body[0].fromlineno or 0, body[-1].end_lineno or 0
    outer, inner = region.col_offset or 0, body[0].col_offset or 0
    for part in (p for stmt in body for p in walk(stmt)):
        if isinstance(part, nodes.Const | nodes.JoinedStr) and (part.end_lineno or 0) > (
            part.lineno or 0
        ):
            return ()
    if position(body[0])[1] <= outer:
        return ()
    edits = []
    remark = remark_above(file, first, last)
    for line in range(first if remark is None else remark.first, last + 1):
        if file.lines[line - 1][:inner].strip():
            return ()  # a comment that stands further out
        if file.lines[line - 1].strip():
            edits.append(Edit(file.place(line, outer, line, inner), ""))
    return tuple(edits)


def cast_backwards(training: Training) -> Iterator[CastBackward]:
    """Backward passes that run within an autocast region."""
    regions = Regions(training.facts)
    seen: set[Node] = set()
    for update in training.loops:
        for backward in update.events("backward"):
            if backward.node in seen:
                continue
            for context, region, frame in backward.contexts:
                state = regions.state(context, frame)
                if state is None:
                    continue
                if state == "on":
                    seen.add(backward.node)
                    yield CastBackward(
                        training.facts, backward.node, update, backward, region, context
                    )
                break


# -- a scaler beside bfloat16 -----------------------------------------------------------------


@dataclass(frozen=True)
class NeedlessScaler(Spot):
    """A scaler that is on where the type needs none; it stands at the constructor."""

    backward: Event
    region: nodes.Call

    @property
    def chain(self) -> tuple[Related, ...]:
        return (
            self.facts.related(self.region, "the region computes in bfloat16"),
            self.facts.related(self.backward.node, "the loss that it scales"),
        )


def needless_scalers(training: Training) -> Iterator[NeedlessScaler]:
    """Scalers that are certainly on and scale losses that are computed in bfloat16 alone."""
    facts, regions = training.facts, Regions(training.facts)
    found: dict[Node, NeedlessScaler] = {}
    doubtful: set[Node] = set()
    for update in training.updates:
        scaled_ones = [
            (backward, scaled)
            for backward in update.events("backward")
            if (scaled := scale_call(training, backward)) is not None
        ]
        if not scaled_ones:
            continue
        casts = list(_casts(training, update, regions))
        types = {regions.dtype(cast) for cast in casts}
        for backward, scaled in scaled_ones:
            for made in _constructors(facts, *scaled):
                if types == {"torch.bfloat16"} and _is_certainly_on(made):
                    found.setdefault(made, NeedlessScaler(facts, made, backward, casts[0]))
                else:
                    doubtful.add(made)
    yield from (scaler for made, scaler in found.items() if made not in doubtful)


def _casts(training: Training, update: Update, regions: Regions) -> Iterator[nodes.Call]:
    contexts: list[tuple[Node, Frame]] = []
    for happening in update.happenings:
        node = happening.node
        if isinstance(node, nodes.With):
            frame = Frame(happening.unit)
            contexts.extend((context, frame) for context, _ in node.items)
    contexts.extend((c, Frame(update.unit)) for c, _ in with_items(update.node))
    yield from regions.casts(contexts)


def _constructors(facts: Facts, call: nodes.Call, frame: Frame) -> Iterator[nodes.Call]:
    if isinstance(call.func, nodes.Attribute):
        for origin in facts.origins(resolve(call.func.expr, frame).node):
            if isinstance(origin, Made) and facts.roles.role(origin) == "scaler":
                yield origin.call


def _is_certainly_on(call: nodes.Call) -> bool:
    if any(k.arg is None for k in call.keywords):
        return False
    given = [k.value for k in call.keywords if k.arg == "enabled"]
    return all(isinstance(value, nodes.Const) and value.value is True for value in given)


__all__ = ["CastBackward", "NeedlessScaler", "cast_backwards", "needless_scalers"]
