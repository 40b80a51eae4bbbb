"""Subject: what happens at each micro-batch of a window that should happen once, or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from astroid import nodes

from ddp_lint.finding import Related
from ddp_lint.model.facts import Facts
from ddp_lint.model.flow import with_items
from ddp_lint.model.frames import Frame
from ddp_lint.model.gradients import Training, Update, UpdateSpot, Window
from ddp_lint.model.origins import Made
from ddp_lint.model.steps import Happening
from ddp_lint.model.tree import Node, ancestors, source, walk
from ddp_lint.model.ways import Event, Way

#: Methods of optimizers that those of other optimizers hand on.
_HANDED_ON = frozenset({"zero_grad", "step"})


@dataclass(frozen=True)
class WindowSpot(UpdateSpot):
    """Something that runs at each micro-batch of a window, though the step waits for its end."""

    step: Event
    length_text: str
    gate: Node | None

    @property
    def step_text(self) -> str:
        node = _asked_for(self.step)
        return source(getattr(node, "func", node))

    @property
    def is_unscale(self) -> bool:
        return self.event.move.kind == "unscale"

    @property
    def chain(self) -> tuple[Related, ...]:
        found = list(self.update.related(self.event))
        says = "the step waits for the end of a window"
        found.append(self.facts.related(_asked_for(self.step), says))
        return tuple(found)


def _asked_for(event: Event) -> Node:
    """Where a clear or a step is asked for: a method that hands it on does as it is told."""
    node, frame = event.node, event.frame
    while frame.call is not None and frame.caller is not None and frame.unit.name in _HANDED_ON:
        node, frame = frame.call, frame.caller
    return node


def unscaled_within(training: Training) -> Iterator[WindowSpot]:
    """``unscale_`` and clips that run at each micro-batch; of both only the unscale."""
    for update in training.updates:
        found: dict[Node, WindowSpot] = {}
        for window in update.windows:
            for event in window.within("unscale", "clip"):
                if event.move.how in ("own", "apex") or event.node in found:
                    continue
                step = _step_of(training, window, event)
                if step is not None:
                    found[event.node] = _spot(window, event, step)
        for way in update.ways:
            for event in way.of_kind("clip", "unscale"):
                if event.node not in found and _under_accelerate(training, update, event):
                    step = next((s for s in way.of_kind("step") if s.move.how == "prepared"), None)
                    if step is not None:
                        found[event.node] = WindowSpot(
                            training.facts, event.node, update, event, step, "several", None
                        )
        unscales = [spot for spot in found.values() if spot.is_unscale]
        yield from unscales or found.values()


def _spot(window: Window, event: Event, step: Event) -> WindowSpot:
    gate = window.gate.test if window.gate is not None else None
    update = window.update
    return WindowSpot(update.facts, event.node, update, event, step, window.length_text, gate)


def _step_of(training: Training, window: Window, event: Event) -> Event | None:
    """The step of the same optimizer, which waits."""
    for step in window.steps:
        target = step.move.target
        if step.move.how == "engine" or target is None:
            continue
        if training.owners.maybe(target, step.frame, event):
            return step
    return None


def _under_accelerate(training: Training, update: Update, event: Event) -> bool:
    """``accelerator.clip_grad_norm_`` at each micro-batch of an accelerator that accumulates."""
    by = event.move.by
    if event.move.how != "accelerator" or by is None:
        return False
    if list(training.gates.of(event)) or any(
        "sync_gradients" in source(c.test) for c, _ in event.conditions
    ):
        return False
    return accelerator_accumulates(training.facts, by) or (
        accelerator_accumulates(training.facts, by) is None and in_accumulate(training, event)
    )


def accelerator_accumulates(facts: Facts, accelerator: Node) -> bool | None:
    """Whether an accelerator counts windows itself: yes, no (one micro-batch), don't know."""
    made = [o for o in facts.origins(accelerator) if isinstance(o, Made)]
    if not made:
        return None
    answers = set()
    for origin in made:
        given = {k.arg: k.value for k in origin.call.keywords}
        if None in given or "gradient_accumulation_plugin" in given:
            return None
        steps = given.get("gradient_accumulation_steps")
        answers.add(steps is not None and getattr(steps, "value", None) != 1)
    return True in answers


def in_accumulate(training: Training, event: Event) -> bool:
    """Whether it runs within ``with accelerator.accumulate(model):``."""
    nodes_on_path: list[Node] = [event.node, *event.frame.chain]
    for node in nodes_on_path:
        for expression, _ in with_items(node):
            if (
                isinstance(expression, nodes.Call)
                and getattr(expression.func, "attrname", "") == "accumulate"
            ):
                return True
    return False


# -- cleared within ------------------------------------------------------------------------------


#: Methods that put what they are given into something, and what a gradient is before they do.
_TAKING = frozenset({"add_", "append", "extend", "copy_", "lerp_", "_foreach_add_"})
_AS_IT_IS = frozenset({"data", "detach", "clone", "float", "double", "half", "bfloat16", "to",
                       "cpu", "view", "reshape", "flatten", "contiguous"})  # fmt: skip


def cleared_within(training: Training) -> Iterator[WindowSpot]:
    """Gradients that are cleared at each micro-batch, while the step waits."""
    for update in training.updates:
        if not update.windows:
            continue
        kept = [h for h in update.happenings if _keeps_gradients(h.node)]
        seen: set[Node] = set()
        for window in update.windows:
            if any(_at_each_micro_batch(h, window) for h in kept):
                continue  # added up elsewhere
            for event in window.within("clear"):
                node = _asked_for(event)
                if node in seen or event.move.how == "prepared":
                    continue
                if not _between_backwards(window, event):
                    continue
                step = _cleared_for(training, window, event)
                if step is not None:
                    seen.add(node)
                    yield replace(_spot(window, event, step), node=node)


def _cleared_for(training: Training, window: Window, event: Event) -> Event | None:
    for step in window.steps:
        target = step.move.target
        if step.move.how in ("engine", "prepared") or target is None:
            continue
        if (
            event.move.how == "own"
            and not training.owners.sources(
                event.move.target or event.node, event.frame
            ).optimizers
        ) and (
            training.owners.same(target, step.frame, event.move.target or event.node, event.frame)
            is not True
        ):
            continue
        if training.owners.holds(target, step.frame, event.move.target, event.frame) is not False:
            return step
    return None


def _at_each_micro_batch(happening: Happening, window: Window) -> bool:
    """Not at the end of the window: a clip there gathers gradients too, to measure them."""
    path = [happening.node, *(call for call, _ in happening.chain)]
    if window.loop is not None:
        return any(parent is window.loop for node in path for _, parent in ancestors(node))
    return window.gate is None or not any(
        isinstance(parent, nodes.If)
        and child is not parent.test
        and window.gate.test in walk(parent.test)
        for node in path
        for child, parent in ancestors(node)
    )


def _keeps_gradients(node: Node) -> bool:
    """Whether a statement puts gradients somewhere else: ``total.add_(parameter.grad)``."""
    match node:
        case nodes.AugAssign(op="+=", target=target, value=value):
            return _is_other(target) and _holds_gradient(value)
        case nodes.Assign(targets=[nodes.Subscript() | nodes.AssignAttr() as target]):
            return _is_other(target) and _holds_gradient(node.value)
        case nodes.Call(func=nodes.Attribute(attrname=name, expr=target), args=args):
            return name in _TAKING and _is_other(target) and any(map(_holds_gradient, args))
    return False


def _is_other(target: Node) -> bool:
    return all(getattr(part, "attrname", "") != "grad" for part in walk(target))


def _holds_gradient(value: Node) -> bool:
    """``parameter.grad.float()``; not ``parameter.grad.norm()``, not ``norm(parameter.grad)``."""
    return any(
        isinstance(part, nodes.Attribute)
        and part.attrname == "grad"
        and (part is value or not isinstance(part.parent, nodes.Call))
        and getattr(part.parent, "attrname", "data") in _AS_IT_IS
        for part in walk(value)
    )


def _between_backwards(window: Window, event: Event) -> bool:
    """Not right after a step of the same iteration: that would be the end of a window."""
    return bool(list(window.within("backward"))) or window.gate is not None


def micro_backwards(window: Window) -> list[Event]:
    """The backward passes of each micro-batch."""
    return list(window.within("backward"))


__all__ = ["Frame", "Way", "WindowSpot", "cleared_within", "unscaled_within"]
