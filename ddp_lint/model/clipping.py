"""Subject: clips at the wrong moment: before there is something to clip, before the ranks have
summed it, or after it was used."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from astroid import nodes

from ddp_lint.finding import Related
from ddp_lint.model.gradients import Training, Update, UpdateSpot
from ddp_lint.model.modules import Unit
from ddp_lint.model.moves import Kind
from ddp_lint.model.tree import Node, source, walk_scope
from ddp_lint.model.ways import Event, Way

When = Literal["before the backward", "after the step"]


@dataclass(frozen=True)
class UselessClip(UpdateSpot):
    """A clip without effect; ``other`` is the backward or the step on the wrong side of it."""

    when: When
    other: Event

    @property
    def other_text(self) -> str:
        return source(self.other.node)


def useless_clips(training: Training) -> Iterator[UselessClip]:
    """Clips before the backward of cleared gradients, or after the step that used them."""
    for update in training.updates:
        found: dict[Node, UselessClip] = {}
        useful: set[Node] = set()
        for way in update.ways:
            for index, clip in enumerate(way.events):
                if clip.move.kind != "clip" or clip.move.how in ("own", "apex"):
                    continue
                useless = _useless(training, update, way, index)
                if useless is None:
                    useful.add(clip.node)
                else:
                    found.setdefault(clip.node, useless)
        yield from (clip for node, clip in found.items() if node not in useful)


def _is_given_gradients(unit: Unit) -> bool:
    """``weight.grad = gradient``: what a function has worked out it may clip, without a backward
    pass before."""
    return any(
        isinstance(node, nodes.Assign)
        and not (isinstance(node.value, nodes.Const) and node.value.value is None)
        and any(getattr(target, "attrname", "") == "grad" for target in node.targets)
        for statement in unit.statements
        for node in walk_scope(statement)
    )


def _useless(training: Training, update: Update, way: Way, index: int) -> UselessClip | None:
    clip, before, after = way.events[index], way.events[:index], way.events[index + 1 :]
    if clip.inner_loops and any(e.inner_loops == clip.inner_loops for e in way.of_kind("step")):
        return None  # one optimizer after the other, each with its own clip
    late = _used_before(training, update, clip, before)
    over = late is not None and not _some(training, update, clip, after, "step", "backward")
    if late is not None and over and update.events("clear"):
        return UselessClip(update.facts, clip.node, update, clip, "after the step", late)
    backwards = [e for e in after if e.move.kind == "backward"]
    if not backwards or any(e.move.kind == "backward" for e in before):
        return None
    cleared = _some(training, update, clip, before, "clear")
    if _is_given_gradients(clip.frame.unit):
        return None
    if cleared and _some(training, update, clip, after, "step"):
        early = backwards[0]
        return UselessClip(update.facts, clip.node, update, clip, "before the backward", early)
    return None


def _used_before(
    training: Training, update: Update, clip: Event, before: tuple[Event, ...]
) -> Event | None:
    """The step that has used the gradients, with no backward since."""
    for event in reversed(before):
        if event.move.kind == "backward":
            return None
        if event.move.kind == "step" and _concerns(training, update, clip, event):
            return event
    return None


def _some(
    training: Training, update: Update, clip: Event, events: tuple[Event, ...], *kinds: Kind
) -> bool:
    return any(
        event.move.kind in kinds
        and (event.move.kind == "backward" or _concerns(training, update, clip, event))
        for event in events
    )


def _concerns(training: Training, update: Update, clip: Event, event: Event) -> bool:
    """Whether a step or a clear is for the parameters that are clipped; where a loop has several
    optimizers only what is certain counts."""
    target, parameters = event.move.target, clip.move.target
    if target is None or parameters is None:
        return False
    held = training.owners.holds(target, event.frame, parameters, clip.frame)
    if held is None and event.move.kind == "clear":
        held = training.owners.same(target, event.frame, parameters, clip.frame)
    return held is True or (held is not False and _has_one_optimizer(training, update))


def _has_one_optimizer(training: Training, update: Update) -> bool:
    targets = [(s.move.target, s.frame) for s in update.steps if s.move.target is not None]
    return all(training.owners.same(*targets[0], *other) for other in targets[1:])


# -- before the ranks have summed -------------------------------------------------------------

#: Their gradients are summed within the backward: each rank clips the same ones.
_SUMMED_BY_WRAPPER = frozenset({"ddp", "fsdp", "prepared module", "engine"})


@dataclass(frozen=True)
class RankClip(UpdateSpot):
    """A clip of one rank's share of the gradient, which ``reduce`` sums over the ranks later."""

    reduce: Event

    @property
    def summing_text(self) -> str:
        """The call, in the function that clips, by which the gradients are summed."""
        path = [*self.reduce.frame.chain, self.reduce.node]
        shared = 0
        for one, other in zip(self.event.frame.chain, self.reduce.frame.chain, strict=False):
            if one is not other:
                break
            shared += 1
        return source(path[shared])

    @property
    def chain(self) -> tuple[Related, ...]:
        says = f"`{source(self.reduce.node)}` sums the gradients over the ranks"
        return (*super().chain, self.facts.related(self.reduce.node, says))


def rank_clips(training: Training) -> Iterator[RankClip]:
    """Clips between a backward and the all-reduce of its gradients."""
    seen: set[Node] = set()
    for update in training.updates:
        for way in update.ways:
            for index, clip in enumerate(way.events):
                if clip.move.kind != "clip" or clip.move.how != "torch" or clip.node in seen:
                    continue
                summed = _summed_after(training, update, way, index)
                if summed is not None:
                    seen.add(clip.node)
                    yield RankClip(training.facts, clip.node, update, clip, summed)


def _summed_after(training: Training, update: Update, way: Way, index: int) -> Event | None:
    """The all-reduce of what is clipped, with a step after it and nothing else between."""
    clip, after = way.events[index], way.events[index + 1 :]
    moves = [event.move.kind for event in way.events[:index]]
    if "backward" not in moves or "reduce" in moves[_last(moves, "backward") :]:
        return None
    for place, event in enumerate(after):
        if event.move.kind in ("backward", "step"):
            return None
        if event.move.kind == "reduce" and _is_summed(training, update, clip, event):
            rest = [later.move.kind for later in after[place + 1 :]]
            # Clipped again once the gradient is whole: then each rank is limited on purpose.
            clipped_again = "clip" in rest[: rest.index("step")] if "step" in rest else True
            return None if clipped_again else event
    return None


def _last(moves: list[Kind], kind: Kind) -> int:
    return len(moves) - 1 - moves[::-1].index(kind)


def _is_summed(training: Training, update: Update, clip: Event, reduce: Event) -> bool:
    """Whether what is clipped is one rank's share of what is summed."""
    around = {id(loop) for loop, _ in reduce.inner_loops}
    for loop, _ in clip.inner_loops:
        if id(loop) not in around and any(
            loop is other for b in update.events("backward") for other, _ in b.inner_loops
        ):
            return False  # each micro-batch, or each sample, is clipped by itself
    parameters, gradient = clip.move.target, reduce.move.target
    if parameters is None:
        return False
    clipped = training.owners.sources(parameters, clip.frame)
    if any(training.facts.roles.role(one) in _SUMMED_BY_WRAPPER for one in clipped.modules):
        return False
    shared = None
    if gradient is not None:
        shared = training.owners.share(parameters, clip.frame, gradient, reduce.frame)
    return shared is True or (shared is None and _has_one_optimizer(training, update))
