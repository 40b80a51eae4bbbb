"""Subject: learning-rate schedules that advance before the optimizer has stepped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from astroid import nodes

from ddp_lint.finding import Edit, Fix
from ddp_lint.model.flow import loops_around
from ddp_lint.model.frames import key, origins_in
from ddp_lint.model.gradients import Training, Update, UpdateSpot
from ddp_lint.model.modules import Unit
from ddp_lint.model.origins import Instance, Made
from ddp_lint.model.remarks import remark_above
from ddp_lint.model.requirements import torch_required
from ddp_lint.model.tree import Node, precedes, source, statement
from ddp_lint.model.ways import Event, Way

#: Where the learning rate is found.
_RATES = frozenset({"param_groups", "get_last_lr", "get_lr"})


@dataclass(frozen=True)
class EarlySchedule(UpdateSpot):
    """A ``scheduler.step()`` before the first ``step`` of its optimizer."""

    step: Event
    last: Event

    @property
    def step_text(self) -> str:
        return source(self.step.node)

    @property
    def fix(self) -> Fix | None:
        """Move it behind the optimizer's step (and the scaler's update) in the same block."""
        moved, after = statement(self.node), statement(self.last.node)
        if self.event.frame is not self.last.frame or moved.parent is not after.parent:
            return None
        if not isinstance(moved, nodes.Expr) or not isinstance(after, nodes.Expr):
            return None
        if self._is_rate_read_behind(after):
            return None  # it would be the next step's rate
        moved_lines = self._lines_of(moved)
        if moved_lines is None:
            return None
        words, gone = moved_lines
        edits = (gone, self.facts.insert_after(self.last.node, words))
        return Fix(f"Move `{source(self.node)}` behind the optimizer's step", edits, safe=False)

    def _is_rate_read_behind(self, after: Node) -> bool:
        """Whether the rest of the iteration asks which rate the step had."""
        return any(
            getattr(happening.node, "attrname", "") in _RATES and precedes(after, happening.top)
            for happening in self.update.happenings
        )

    def _lines_of(self, moved: nodes.Expr) -> tuple[str, Edit] | None:
        """The statement with what is written about it, and the edit that takes both away; None
        where nobody can tell what a comment above it speaks of."""
        file = self.facts.values.module_of(moved).source
        first, last = moved.lineno or 1, moved.end_lineno or 1
        before = file.lines[first - 1].encode()[: moved.col_offset or 0]
        behind = file.lines[last - 1].encode()[moved.end_col_offset or 0 :].decode().strip()
        if before.strip() or (behind and not behind.startswith("#")):
            return None
        lines = [f"{source(self.node)}  {behind}".rstrip()]
        remark = remark_above(file, first, last)
        if remark is not None:
            subject = remark.subject(self.node)
            if subject == "unknown":
                return None
            if subject == "call":
                lines[:0], first = remark.lines, remark.first
        return "\n".join(lines), Edit(file.place(first, 0, last + 1, 0), "")


def early_schedules(training: Training) -> Iterator[EarlySchedule]:
    """Schedules of torch's kind that advance before their optimizer's first step."""
    seen: set[Node] = set()
    for update in training.updates:
        if _advances_first(training, update):
            continue
        for loop, unit in [(update.node, update.unit), *_outer_loops(training, update)]:
            ways = update.ways if loop is update.node else training.walker.ways(loop, unit)
            at = update if loop is update.node else Update(training, loop, unit)
            for way in ways:
                for found in _early(training, at, way):
                    if found.node not in seen:
                        seen.add(found.node)
                        yield found


def _advances_first(training: Training, update: Update) -> bool:
    """Whether the project asks for a PyTorch in which schedulers begin one step before the first:
    until 1.1 they were meant to advance first."""
    project = training.facts.values.codebase.project
    return any(one.excludes((1, 1)) for one in torch_required(project, update.unit.module))


def _outer_loops(training: Training, update: Update) -> Iterator[tuple[Node, Unit]]:
    """The loops around a loop that steps in which a schedule may advance too."""
    graph = training.facts.graph
    todo: list[tuple[Node, Unit]] = [(update.node, update.unit)]
    seen: set[int] = set()
    while todo:
        node, unit = todo.pop()
        if "schedule" in training.moves.kinds(unit):
            for loop in loops_around(node):
                if loop is not update.node and id(loop) not in seen:
                    seen.add(id(loop))
                    yield loop, unit
        for site in graph.sites_of(unit):
            if id(site.call) not in seen and not site.handed:
                seen.add(id(site.call))
                todo.append((site.call, site.caller))


def _early(training: Training, update: Update, way: Way) -> Iterator[EarlySchedule]:
    for index, event in enumerate(way.events):
        if event.move.kind != "schedule" or not _is_of_torch(training, event):
            continue
        if any(
            _may_be_its(training, event, e) for e in way.events[:index] if e.move.kind == "step"
        ):
            continue
        later = [e for e in way.events[index:] if e.move.kind == "step"]
        step = next((e for e in later if _is_its(training, update, event, e)), None)
        if step is not None and _from_the_first_on(event, step):
            updates = [e for e in way.events[index:] if e.move.kind == "update"]
            last = updates[0] if updates and updates[0].frame is step.frame else step
            yield EarlySchedule(training.facts, event.node, update, event, step, last)


def _is_of_torch(training: Training, event: Event) -> bool:
    """A scheduler that starts at its first value and is advanced without an argument."""
    call, target = event.node, event.move.target
    if not isinstance(call, nodes.Call) or call.args or call.keywords or target is None:
        return False
    origins = origins_in(training.facts.graph, target, event.frame)
    roles = {training.facts.roles.role(o) for o in origins}
    plateau = any(isinstance(o, Made) and o.name.endswith("ReduceLROnPlateau") for o in origins)
    return bool(roles) and roles <= {"scheduler", "own scheduler"} and not plateau


def _optimizers(training: Training, event: Event) -> list[Node]:
    """What the schedule was made for."""
    assert event.move.target is not None
    found: list[Node] = []
    for origin in origins_in(training.facts.graph, event.move.target, event.frame):
        if isinstance(origin, Made | Instance) and origin.call is not None:
            given = [k.value for k in origin.call.keywords if k.arg == "optimizer"]
            places = [
                a
                for a in origin.call.args
                if training.facts.roles_of(a) & {"optimizer", "prepared optimizer"}
            ]
            found.extend(given or places[:1] or origin.call.args[:1])
    return found


def _overlap(training: Training, schedule: Event, step: Event) -> bool | None:
    if step.move.target is None:
        return None
    origins = origins_in(training.facts.graph, step.move.target, step.frame)
    made = [training.facts.origins(o) for o in _optimizers(training, schedule)]
    if any(one & origins for one in made):
        return True
    known = all(isinstance(o, Made | Instance) for one in [*made, origins] for o in one)
    return False if made and known else None


def _may_be_its(training: Training, schedule: Event, step: Event) -> bool:
    return _overlap(training, schedule, step) is not False


def _is_its(training: Training, update: Update, schedule: Event, step: Event) -> bool:
    answer = _overlap(training, schedule, step)
    if answer is None:
        texts = {key(s.move.target, s.frame) for s in update.steps if s.move.target is not None}
        return len(texts) == 1
    return answer


def _from_the_first_on(event: Event, step: Event) -> bool:
    """Not ``if epoch > 0``: apart from settings it waits for nothing that the step does not."""
    shared = {id(c.test) for c, _ in step.conditions}
    return all(id(c.test) in shared or _is_setting(c.test) for c, _ in event.conditions)


def _is_setting(test: Node) -> bool:
    """A flag, or whether something is there."""
    if isinstance(test, nodes.UnaryOp) and test.op == "not":
        return _is_setting(test.operand)
    if isinstance(test, nodes.Compare):
        return all(op in ("is", "is not") for op, _ in test.ops)
    return isinstance(test, nodes.Attribute)
