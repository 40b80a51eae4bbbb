"""Subject: clips that come when there is nothing to clip yet, or nothing left to do with it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from ddp_lint.model.gradients import Training, Update, UpdateSpot
from ddp_lint.model.moves import Kind
from ddp_lint.model.tree import Node, source
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
