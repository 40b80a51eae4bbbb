"""Layer 13, leaving: one rank that leaves a step which the others go on with."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from astroid import nodes

from ddp_lint.finding import Related
from ddp_lint.model.collectives import Collectives
from ddp_lint.model.facts import Facts, Spot
from ddp_lint.model.feeding import Feeding, frame_of
from ddp_lint.model.flow import always_exits, conditions, loops_around, reaching
from ddp_lint.model.frames import Frame, origins_in
from ddp_lint.model.locality import Locality
from ddp_lint.model.origins import Instance, Origin
from ddp_lint.model.several import makes_several
from ddp_lint.model.steps import Happening, StepLoop
from ddp_lint.model.testing import is_of_tests
from ddp_lint.model.tree import Node, ancestors, dotted, is_within, source, walk, walk_scope
from ddp_lint.model.wrappers import inner_of, kind

_EXITS = frozenset({"sys.exit", "exit", "quit", "os._exit", "os.abort"})
_ABOUT_LOSS = re.compile(r"nan|inf|finite|loss", re.I)
_STEPS = frozenset({"training_step", "compute_loss"})
_SYNCING = frozenset({"ddp", "prepared", "fsdp", "engine"})
_PLAIN = frozenset({"module", "dp"})


@dataclass(frozen=True)
class LocalExit(Spot):
    """A statement by which one rank leaves the step, or skips its backward pass, on its own."""

    test: Node
    missed: Node
    loop: StepLoop
    #: Whether the others may have waited before, in something that cannot be told.
    at_the_latest: bool = False

    @property
    def test_text(self) -> str:
        return source(self.test)

    @property
    def missed_text(self) -> str:
        return "backward()" if self.loop.is_hook else source(self.missed)

    @property
    def fails(self) -> bool:
        """Whether the process ends in a way that launchers take for a failure.

        Those that watch their ranks, torchrun among them, then end the others.
        """
        return _ends_as_failure(self.node)

    @property
    def places(self) -> tuple[Related, ...]:
        return (
            self.facts.related(self.test, "this is decided by each rank for itself"),
            self.facts.related(
                self.missed,
                "the framework runs the backward pass of this"
                if self.loop.is_hook
                else "the other ranks wait here"
                + (", if not before" if self.at_the_latest else ""),
            ),
        )


def local_exits(facts: Facts) -> Iterator[LocalExit]:
    """Exits of a training step on a value that only this rank has."""
    if facts.once(makes_several) is None:
        return
    seen: set[int] = set()
    for loop in facts.steps.loops:
        for found in _of_hook(facts, loop) if loop.is_hook else _of_loop(facts, loop):
            # Both arms of one test may leave: one decision, one finding.
            if id(found.node) not in seen and id(found.test) not in seen:
                seen |= {id(found.node), id(found.test)}
                yield found


def _of_hook(facts: Facts, loop: StepLoop) -> Iterator[LocalExit]:
    """What ends the process within a step that a framework goes on with."""
    if loop.unit.name not in _STEPS:
        return
    for happening in loop.happenings:
        node = happening.node
        if not _leaves(happening, loop) or isinstance(node, nodes.Return):
            continue
        if isinstance(node, nodes.Continue | nodes.Break) or _is_caught(happening, loop):
            continue
        if _ends_as_failure(node) and facts.ranks.start.ends_together:
            continue
        test = _local_test(facts, loop, happening)
        if test is not None:
            yield LocalExit(facts, node, test, loop.node, loop)


def _of_loop(facts: Facts, loop: StepLoop) -> Iterator[LocalExit]:
    happenings = loop.happenings
    exits = [(i, h) for i, h in enumerate(happenings) if _leaves(h, loop)]
    sent = [(i, h) for i, h in enumerate(happenings) if _is_sent(facts, h)]
    if not sent:
        return
    joining = _Joining(facts, loop)
    sent = [(i, h) for i, h in sent if joining.waits(h)]
    for index, happening in exits if sent else ():
        if isinstance(happening.node, nodes.Assert | nodes.Raise) and is_of_tests(
            facts, happening.unit
        ):
            continue  # it is there to end the run, and who started the ranks ends them all
        if _ends_as_failure(happening.node) and facts.ranks.start.ends_together:
            continue
        missed = _missed(happening, index, sent, loop)
        if missed is None or _is_caught(happening, loop):
            continue
        test = _local_test(facts, loop, happening)
        if test is not None:
            first, is_sure = _first_wait(facts, loop, happening, missed)
            yield LocalExit(facts, happening.node, test, first.node, loop, not is_sure)
    if sent:
        yield from _around_it(facts, loop, sent[0][1])
    for _, happening in sent:
        branch = _branch_around(facts, loop, happening)
        if branch is not None:
            yield LocalExit(facts, branch, branch.test, happening.node, loop)


def _leaves(happening: Happening, loop: StepLoop) -> bool:
    node = happening.node
    if isinstance(node, nodes.Raise):
        return "NotImplemented" not in node.as_string()
    if isinstance(node, nodes.Assert):
        return True
    if isinstance(node, nodes.Continue | nodes.Break):
        return not happening.chain and next(loops_around(node), None) is loop.node
    if isinstance(node, nodes.Return):
        return True
    return isinstance(node, nodes.Call) and dotted(node.func) in _EXITS


def _ends_as_failure(node: Node) -> bool:
    """Whether a statement ends the process, and not with the exit code of a success."""
    ends: Node | None = node.exc if isinstance(node, nodes.Raise) else node
    name = dotted(ends.func if isinstance(ends, nodes.Call) else ends) if ends else ""
    if name == "os.abort" or isinstance(node, nodes.Assert):
        return True
    if isinstance(node, nodes.Raise) and name != "SystemExit":
        return True
    codes = ends.args if isinstance(ends, nodes.Call) else []
    return any(not (isinstance(code, nodes.Const) and code.value in (0, None)) for code in codes)


def _is_sent(facts: Facts, happening: Happening) -> bool:
    node = happening.node
    if not isinstance(node, nodes.Call):
        return False
    if facts.steps.is_backward(node):
        return True
    return facts.once(Collectives).direct(node) is not None


def _around_it(facts: Facts, loop: StepLoop, missed: Happening) -> Iterator[LocalExit]:
    """Exits from the loops around, by what the steps of the last round have left behind."""
    for node, unit in loop.outer_loops:
        if unit is not loop.unit:
            continue
        outer = StepLoop(facts.steps, node, unit)
        for part in walk_scope(node):
            happening = Happening(part, unit)
            if not _leaves(happening, outer) or is_within(part, loop.node):
                continue
            if _is_caught(happening, outer):
                continue
            if _ends_as_failure(part) and facts.ranks.start.ends_together:
                continue
            test = _local_test(facts, outer, happening)
            if test is not None and _is_left_by(loop, test):
                yield LocalExit(facts, happening.node, test, missed.node, loop)


def _is_left_by(loop: StepLoop, test: Node) -> bool:
    return any(
        isinstance(part, nodes.Name)
        and any(is_within(b.node, loop.node) for b in reaching(loop.unit, part.name, part))
        for part in walk(test)
    )


class _Joining:
    """In which sends of one loop ranks wait for each other."""

    def __init__(self, facts: Facts, loop: StepLoop) -> None:
        self.facts = facts
        self.loop = loop

    def waits(self, happening: Happening) -> bool:
        """Not in the backward of models that nothing wraps, or around a wrapper."""
        if not self.facts.steps.is_backward(happening.call):
            return True
        return self._is_synced and self._makers.get(id(happening.node)) != {"plain"}

    @cached_property
    def _is_synced(self) -> bool:
        return _is_synced(self.facts, self.loop)

    @cached_property
    def _makers(self) -> dict[int, set[str]]:
        """The kinds of models whose values go into each backward call, by its identity."""
        feeding = self.facts.once(Feeding)
        found: dict[int, set[str]] = {}
        for made in self.loop.calls:
            maker = _maker(self.facts, made)
            for backward in feeding.backwards(made) if maker else ():
                found.setdefault(backward, set()).add(maker)
        return found


def _maker(facts: Facts, happening: Happening) -> Literal["wrapped", "plain", "unknown", ""]:
    """What kind of model a call runs forward, if it does."""
    func = happening.call.func
    if isinstance(func, nodes.Attribute) and func.attrname == "forward":
        func = func.expr
    if not isinstance(func, nodes.Name | nodes.Attribute | nodes.Subscript):
        return ""
    origins = origins_in(facts.graph, func, frame_of(happening))
    if inner_of(facts, func) is not None:
        return "plain"
    if any(kind(facts, origin) in _SYNCING for origin in origins):
        return "wrapped"
    modules = [origin for origin in origins if facts.roles.role(origin) in _PLAIN]
    if modules:
        return "" if all(map(_is_criterion, modules)) else "plain"
    is_seen = facts.names(happening.call) or facts.graph.targets_of(happening.call)
    is_named = isinstance(func, nodes.Name) or dotted(func).startswith("self.")
    return "unknown" if is_named and not is_seen else ""


def _is_criterion(origin: Origin) -> bool:
    name = origin.cls.name if isinstance(origin, Instance) else str(getattr(origin, "name", ""))
    return name.endswith(("Loss", "Criterion"))


def _is_synced(facts: Facts, loop: StepLoop) -> bool:
    """Whether the models of the loop are wrapped, as far as they are known."""
    plain = False
    for happening in loop.calls:
        node = happening.node
        assert isinstance(node, nodes.Call)
        func = node.func
        if isinstance(func, nodes.Attribute) and func.attrname == "forward":
            func = func.expr
        if not isinstance(func, nodes.Name | nodes.Attribute | nodes.Subscript):
            continue
        origins = origins_in(facts.graph, func, frame_of(happening))
        if (
            any(kind(facts, origin) in _SYNCING for origin in origins)
            and inner_of(facts, func) is None
        ):
            return True
        plain = plain or (
            not happening.chain and any(facts.roles.role(o) in _PLAIN for o in origins)
        )
    return not plain and facts.once(_wraps_somewhere)


def _wraps_somewhere(facts: Facts) -> bool:
    return any(
        kind(facts, origin) in _SYNCING
        for call, _ in facts.calls
        for origin in facts.values.of(call)
    )


def _missed(
    happening: Happening, index: int, sent: list[tuple[int, Happening]], loop: StepLoop
) -> Happening | None:
    """The collective that the others come to: later in this iteration, or in another one."""
    node = happening.node
    later = [h for i, h in sent if i > index]
    if isinstance(node, nodes.Return) and happening.unit is not loop.unit:
        # It leaves the helper only: what follows in that very helper is missed.
        depth = len(happening.chain)
        later = [
            h
            for h in later
            if (h.unit is happening.unit and h.chain == happening.chain)
            or (
                len(h.chain) > depth
                and h.chain[:depth] == happening.chain
                and h.chain[depth][1] is happening.unit
            )
        ]
        return later[0] if later else None
    if isinstance(node, nodes.Continue):
        return later[0] if later else None
    return (later or [h for _, h in sent])[0]


def _first_wait(
    facts: Facts, loop: StepLoop, happening: Happening, missed: Happening
) -> tuple[Happening, bool]:
    """Where the others wait first on their way to ``missed``, and whether that is sure.

    A sharded model gathers its parameters in the forward pass; a backward pass of a model that
    is not known may have averaged its gradients.
    """
    every = loop.happenings
    left, at = every.index(happening), every.index(missed)
    way = every[left + 1 : at] if left < at else [*every[left + 1 :], *every[:at]]
    is_sure = True
    for one in way:
        if not isinstance(one.node, nodes.Call) or facts.how_often(loop, one) != "every step":
            continue
        if _gathers(facts, one):
            return one, True
        is_sure = is_sure and not facts.steps.is_backward(one.call)
    return missed, is_sure


def _gathers(facts: Facts, happening: Happening) -> bool:
    """Whether a call is the forward pass of a sharded model."""
    func = happening.call.func
    return (
        isinstance(func, nodes.Name | nodes.Attribute)
        and any(
            kind(facts, origin) == "fsdp"
            for origin in origins_in(facts.graph, func, frame_of(happening))
        )
        and inner_of(facts, func) is None
    )


def _is_caught(happening: Happening, loop: StepLoop) -> bool:
    """Whether something in the iteration handles what is raised, or is the handler itself."""
    for node, _ in [*happening.chain, (happening.node, happening.unit)]:
        for child, parent in ancestors(node):
            if isinstance(parent, nodes.ExceptHandler):
                return True
            if isinstance(parent, nodes.Try) and not all(map(_raises_again, parent.handlers)):
                inside = any(child is one for one in parent.body)
                if (
                    inside
                    and isinstance(happening.node, nodes.Raise | nodes.Assert | nodes.Call)
                    and (is_within(parent, loop.node) or happening.chain)
                ):
                    return True
    return False


def _raises_again(handler: nodes.ExceptHandler) -> bool:
    return isinstance(always_exits(handler.body), nodes.Raise)


def _frames(happening: Happening) -> list[Frame]:
    """The frames on the way to a happening, the loop's own first."""
    return list(reversed(list(frame_of(happening).outward)))


def _local_test(facts: Facts, loop: StepLoop, happening: Happening) -> Node | None:
    locality = facts.once(Locality)
    # Input that is refused is an error like any other; skipping a batch is not.
    skips = isinstance(happening.node, nodes.Continue | nodes.Break | nodes.Return)
    wanted = ("local", "batch") if skips else ("local",)
    every = [*happening.chain, (happening.node, happening.unit)]
    for level, ((node, _), frame) in enumerate(zip(every, _frames(happening), strict=True)):
        if isinstance(node, nodes.Assert):
            about = _ABOUT_LOSS.search(node.test.as_string())
            if about and locality.of(node.test, frame) == "local":
                return node.test
        for condition in conditions(node):
            if level == 0 and not is_within(condition.test, loop.node):
                continue
            if condition.exit is not None:
                continue  # another statement leaves there
            if facts.guards.depends_on_rank(condition.test):
                continue  # a guard, which is another matter
            if isinstance(happening.node, nodes.Raise) and not _ABOUT_LOSS.search(
                condition.test.as_string()
            ):
                continue
            if locality.of(condition.test, frame) in wanted:
                return condition.test
    return None


def _branch_around(facts: Facts, loop: StepLoop, happening: Happening) -> nodes.If | None:
    """The ``if`` on a rank's own value that decides whether something is sent."""
    locality = facts.once(Locality)
    every = [*happening.chain, (happening.node, happening.unit)]
    for level, ((node, _), frame) in enumerate(zip(every, _frames(happening), strict=True)):
        for child, parent in ancestors(node):
            if parent is loop.node:
                break
            if not isinstance(parent, nodes.If) or child is parent.test:
                continue
            if level == 0 and not is_within(parent, loop.node):
                break
            other = parent.orelse if any(child is one for one in parent.body) else parent.body
            if always_exits(other) or _sends_too(facts, other):
                continue
            if locality.of(parent.test, frame) not in ("local", "batch"):
                continue
            return parent
    return None


def _sends_too(facts: Facts, block: list[Node]) -> bool:
    sending = facts.once(Collectives)
    for statement in block:
        for node in walk(statement):
            if isinstance(node, nodes.Call):
                if facts.steps.is_backward(node) or sending.direct(node) is not None:
                    return True
                for target in facts.graph.targets_of(node):
                    if facts.steps.reaches_backward(target) or sending.may_reach(target):
                        return True
    return False
