"""Subject: gradients under a loss scaler, from the scaled backward to the scaler's update."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from astroid import nodes

from ddp_lint.finding import Fix, Related
from ddp_lint.model.facts import Facts
from ddp_lint.model.flow import conditions
from ddp_lint.model.frames import Frame, resolve
from ddp_lint.model.gradients import Training, Update, UpdateSpot
from ddp_lint.model.origins import Expression, Instance, Made, Member, Param, Result, Unknown
from ddp_lint.model.tree import Node, source, statement
from ddp_lint.model.ways import Event, Way


def scale_call(training: Training, backward: Event) -> tuple[nodes.Call, Frame] | None:
    """The ``scaler.scale(loss)`` whose result is propagated, if it is one."""
    target = backward.move.target
    if backward.move.kind != "backward" or backward.move.how != "plain" or target is None:
        return None
    written = resolve(target, backward.frame)
    for origin in training.facts.origins(written.node):
        if (
            isinstance(origin, Result)
            and isinstance(origin.of, Member)
            and origin.of.name == "scale"
        ):
            call = origin.call
            if isinstance(call.func, nodes.Attribute) and training.moves.is_scaler(call.func.expr):
                return call, written.frame
    return None


def is_off(facts: Facts, scaler: Node) -> bool:
    """A scaler that is made with ``enabled=False`` hands everything through; and one that is
    made only where a constant says no is never there."""
    made = [
        o for o in facts.origins(scaler) if isinstance(o, Made) and facts.roles.role(o) == "scaler"
    ]
    return bool(made) and all(_says_off(facts, o.call) for o in made)


def _says_off(facts: Facts, call: nodes.Call) -> bool:
    given = [k.value for k in call.keywords if k.arg == "enabled"]
    if any(_constant(facts, value) is False for value in given):
        return True
    return any(_constant(facts, c.test) is (not c.holds) for c in conditions(call))


def _constant(facts: Facts, node: Node) -> bool | None:
    """The truth of a name that has one value, written in the program; of ``False`` itself."""
    if not isinstance(node, nodes.Name | nodes.Const):
        return None  # an attribute has another value in another object
    origins = facts.origins(node)
    values = {
        o.node.value if isinstance(o, Expression) and isinstance(o.node, nodes.Const) else None
        for o in origins
    }
    value = values.pop() if len(values) == 1 else None
    return value if isinstance(value, bool) else None


def is_scaled(training: Training, backward: Event) -> bool:
    found = scale_call(training, backward)
    return found is not None and not is_off(training.facts, scaler_of(found[0]))


def scaler_of(scale: nodes.Call) -> Node:
    """``scaler`` of ``scaler.scale(loss)``."""
    assert isinstance(scale.func, nodes.Attribute)
    return scale.func.expr


# -- clipped while scaled ---------------------------------------------------------------------


@dataclass(frozen=True)
class ScaledClip(UpdateSpot):
    """A clip of gradients that still carry the scale.

    ``step`` is the scaler's step after it; under apex there is none, and ``region`` is the
    block whose end unscales.
    """

    step: Event | None
    unscaled_later: Event | None = None
    region: nodes.With | None = None

    @property
    def remedy(self) -> str:
        if self.step is None:
            return "clip after the `with` block, which unscales at its end"
        return f"call `{self.unscale_text}` before it"

    @property
    def unscale_text(self) -> str:
        assert self.step is not None
        assert self.step.move.by is not None
        assert self.step.move.target is not None
        return f"{source(self.step.move.by)}.unscale_({source(self.step.move.target)})"

    @property
    def fix(self) -> Fix | None:
        """Unscale before the clip, where scaler and optimizer have names."""
        if self.step is None or self.step.frame is not self.event.frame:
            return None
        late = self.unscaled_later
        if late is None:
            edits = (self.facts.insert_before(self.node, self.unscale_text),)
            return Fix(f"Insert `{self.unscale_text}`", edits, safe=True)
        text = source(late.node)
        alone = statement(late.node)
        if late.frame is not self.event.frame or not isinstance(alone, nodes.Expr):
            return None
        if alone.parent is not statement(self.node).parent:
            return None
        gone = self.facts.delete(late.node)
        if gone is None:
            return None
        words = "\n".join([*self.facts.remarks_on(late.node), text])
        moved = (self.facts.insert_before(self.node, words), gone)
        return Fix(f"Move `{text}` before the clip", moved, safe=True)


def clips_of_scaled(training: Training) -> Iterator[ScaledClip]:
    """Clips of gradients that still carry the scale, before a ``scaler.step``."""
    seen: set[Node] = set()
    for update in training.updates:
        for way in update.ways:
            for index, clip in enumerate(way.events):
                if clip.move.kind != "clip" or clip.node in seen:
                    continue
                region = _unscaling_region(training, way.events[:index], clip)
                if region is not None:
                    seen.add(clip.node)
                    yield ScaledClip(training.facts, clip.node, update, clip, None, None, region)
                if clip.move.how != "torch" or clip.node in seen:
                    continue
                step = _scaled_at(training, update, way, index)
                if step is not None:
                    seen.add(clip.node)
                    late = [e for e in way.events[index:] if e.move.kind == "unscale"]
                    yield ScaledClip(
                        training.facts, clip.node, update, clip, step, late[0] if late else None
                    )


def _unscaling_region(
    training: Training, before: tuple[Event, ...], clip: Event
) -> nodes.With | None:
    """The ``with amp.scale_loss(...)`` of apex that a clip stands in, after its backward."""
    for context, region, _ in clip.contexts:
        if isinstance(context, nodes.Call) and any(
            name.endswith("amp.scale_loss") for name in training.facts.names(context)
        ):
            propagated = any(
                event.move.kind == "backward" and region in [r for _, r, _ in event.contexts]
                for event in before
            )
            return region if propagated else None
    return None


def _scaled_at(training: Training, update: Update, way: Way, index: int) -> Event | None:
    """The scaler's step that makes a clip of scaled gradients wrong, if it is one."""
    clip = way.events[index]
    later = [e for e in way.events[index:] if e.move.kind == "step"]
    if not later and any(way is unfinished for unfinished, _ in update.unfinished):
        later = list(update.gated)
    for step in later:
        optimizer = step.move.target
        if step.move.how != "scaler" or optimizer is None:
            continue
        if training.owners.holds(optimizer, step.frame, clip.move.target, clip.frame) is False:
            continue
        if _still_scaled(training, way.events[:index], clip, step):
            return step
    return None


def _still_scaled(training: Training, before: tuple[Event, ...], clip: Event, step: Event) -> bool:
    owners = training.owners
    for event in reversed(before):
        kind, target = event.move.kind, event.move.target
        if kind == "rescale":
            return False
        if kind in ("unscale", "step"):
            if target is None or clip.move.target is None:
                return False
            if owners.holds(target, event.frame, clip.move.target, clip.frame) is not False:
                return False
        elif kind == "backward":
            return is_scaled(training, event)
    return False


# -- half used --------------------------------------------------------------------------------

Half = Literal["plain step", "steps twice", "no update", "never scaled", "update between"]


@dataclass(frozen=True)
class HalfUse(UpdateSpot):
    """A step of the scaler's protocol that is missing, or is made around it."""

    half: Half
    scaler: Node | None

    @property
    def scaler_text(self) -> str:
        return source(self.scaler) if self.scaler is not None else "scaler"

    @property
    def fix(self) -> Fix | None:
        """One ``update()`` behind the last optimizer that the scaler steps."""
        if self.half != "no update":
            return None
        steps = [step for step in self.update.steps if step.move.how == "scaler"]
        blocks = {id(statement(step.node).parent) for step in steps}
        last = steps[-1] if steps else self.event
        if len(blocks) > 1 or not isinstance(statement(last.node), nodes.Expr):
            return None
        if any(step.frame is not last.frame for step in steps):
            return None
        edits = (self.facts.insert_after(last.node, f"{self.scaler_text}.update()"),)
        return Fix(f"Insert `{self.scaler_text}.update()`", edits, safe=False)


def half_uses(training: Training) -> Iterator[HalfUse]:
    """Loops that use a scaler for one half of the step and not for the other."""
    for update in training.updates:
        seen: set[Node] = set()
        for found in _half_uses(training, update):
            if found.node not in seen:
                seen.add(found.node)
                yield found


def _half_uses(training: Training, update: Update) -> Iterator[HalfUse]:
    updated = bool(update.events("update"))
    for way in update.ways:
        for index, event in enumerate(way.events):
            if event.move.kind == "step" and event.move.how == "plain":
                yield from _plain_step(training, update, way, index)
            elif event.move.kind == "step" and event.move.how == "scaler":
                assert event.move.by is not None
                if is_off(training.facts, event.move.by):
                    continue
                if not updated:
                    yield HalfUse(
                        training.facts, event.node, update, event, "no update", event.move.by
                    )
                yield from _never_scaled(training, update, way, index)
        yield from _update_between(training, update, way)


def _plain_step(training: Training, update: Update, way: Way, index: int) -> Iterator[HalfUse]:
    step = way.events[index]
    assert step.move.target is not None
    owners = training.owners
    backwards: list[Event] = []
    for event in reversed(way.events[:index]):
        kind, target = event.move.kind, event.move.target
        if kind in ("rescale", "unscale"):
            return
        if kind == "step" and (
            target is None
            or owners.same(step.move.target, step.frame, target, event.frame) is not False
        ):
            if not backwards and event.move.how == "scaler":
                assert event.move.by is not None
                if owners.same(step.move.target, step.frame, target or event.node, event.frame):
                    yield HalfUse(
                        training.facts, step.node, update, step, "steps twice", event.move.by
                    )
                return
            break
        if kind == "backward":
            backwards.append(event)
    if _steps_its_own_way(training, step):
        return
    if backwards and all(is_scaled(training, b) for b in backwards):
        found = scale_call(training, backwards[0])
        assert found is not None
        yield HalfUse(training.facts, step.node, update, step, "plain step", scaler_of(found[0]))


def _steps_its_own_way(training: Training, step: Event) -> bool:
    """An optimizer of the project that has a ``step`` of its own may know of the scale."""
    assert step.move.target is not None
    return any(
        isinstance(origin, Instance)
        and any("step" in cls.methods for cls in training.facts.values.mro(origin.cls))
        for origin in training.facts.origins(step.move.target)
    )


def _never_scaled(training: Training, update: Update, way: Way, index: int) -> Iterator[HalfUse]:
    step = way.events[index]
    backwards = [e for e in way.events[:index] if e.move.kind == "backward"]
    if not backwards or way.of_kind("rescale"):
        return
    if any(
        b.move.how != "plain" or scale_call(training, b) or not _is_loss(training, b)
        for b in backwards
    ):
        return
    yield HalfUse(
        training.facts, backwards[0].node, update, backwards[0], "never scaled", step.move.by
    )


def _is_loss(training: Training, backward: Event) -> bool:
    """Something that is certainly no scaled loss: its making is in sight."""
    target = backward.move.target
    assert target is not None
    origins = training.facts.origins(resolve(target, backward.frame).node)
    return bool(origins) and not any(isinstance(o, Param | Unknown) for o in origins)


def _update_between(training: Training, update: Update, way: Way) -> Iterator[HalfUse]:
    """A second update in one iteration, with a step and no scaled backward since the first."""
    since: list[Event] | None = None
    for event in way.events:
        if event.move.kind == "update":
            if (
                since is not None
                and any(e.move.kind == "step" and e.move.how == "scaler" for e in since)
                and not any(e.move.kind == "backward" for e in since)
            ):
                yield HalfUse(
                    training.facts, event.node, update, event, "update between", event.move.by
                )
            since = []
        elif since is not None:
            since.append(event)


__all__ = ["Related", "clips_of_scaled", "half_uses", "is_off", "is_scaled", "scale_call"]
