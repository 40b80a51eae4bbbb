"""Subject, part 2: the ways through one iteration of a loop, with the moves on each in order.

A loop body is walked as it runs, calls entered.  At a branch that matters there are two ways,
and a test that was decided before is not decided differently again: ``if amp: ... if amp: ...``
has two ways, not four.  A receiver of several possible classes has one on each way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from astroid import nodes

from ddp_lint.model.facts import Facts
from ddp_lint.model.flow import Condition, conditions, loops_around, with_items
from ddp_lint.model.frames import Frame, key, resolve
from ddp_lint.model.modules import Class, Unit
from ddp_lint.model.moves import Move, Moves
from ddp_lint.model.origins import Instance
from ddp_lint.model.tree import Node, dotted, is_within, walk_scope

MOST_WAYS = 96
DEEPEST = 8
_LEAVING = nodes.Continue | nodes.Break | nodes.Return


@dataclass(frozen=True, eq=False)
class Event:
    """A move as it happens on some way: in a frame, inside of loops and conditions."""

    move: Move
    frame: Frame
    loop: Node

    @property
    def node(self) -> Node:
        return self.move.node

    @cached_property
    def conditions(self) -> tuple[tuple[Condition, Frame], ...]:
        """What has to hold within the iteration for it to happen, innermost first."""
        found = []
        for node, frame in self._path():
            for condition in conditions(node):
                if frame.caller is None and not _inside(condition.test, self.loop):
                    continue
                found.append((condition, frame))
        return tuple(found)

    @cached_property
    def inner_loops(self) -> tuple[tuple[Node, Frame], ...]:
        """The loops inside of the iteration that run it again and again, innermost first."""
        found = []
        for node, frame in self._path():
            for around in loops_around(node):
                if frame.caller is None and (
                    around is self.loop or not _inside(around, self.loop)
                ):
                    continue
                found.append((around, frame))
        return tuple(found)

    @cached_property
    def contexts(self) -> tuple[tuple[Node, nodes.With, Frame], ...]:
        """The context managers around it, innermost first, each with its ``with``."""
        return tuple(
            (context, region, frame)
            for node, frame in self._path()
            for context, region in with_items(node)
        )

    def _path(self) -> Iterator[tuple[Node, Frame]]:
        """The node itself and the calls that lead to it, innermost first."""
        node: Node = self.node
        for frame in self.frame.outward:
            yield node, frame
            if frame.call is not None:
                node = frame.call


def body_of(node: Node) -> list[Node]:
    """The statements of a loop or function; of a lambda its expression."""
    body = getattr(node, "body", [])
    return list(body) if isinstance(body, list) else [body]


def _inside(node: Node, loop: Node) -> bool:
    if not is_within(node, loop):
        return False
    if isinstance(loop, nodes.For):
        return not is_within(node, loop.iter) and not is_within(node, loop.target)
    return node is not getattr(loop, "test", None)


@dataclass(frozen=True)
class Way:
    """One way through an iteration: its moves in order, and how the tests on it came out.

    ``end`` is "continue" where the iteration is over early, "break" where the loop is.
    """

    events: tuple[Event, ...] = ()
    known: dict[str, bool] = field(default_factory=dict)
    decided: tuple[tuple[Node, bool], ...] = ()
    classes: dict[str, Class] = field(default_factory=dict)
    end: str = ""

    def decides(self, test: Node) -> bool | None:
        for one, holds in reversed(self.decided):
            if one is test:
                return holds
        return None

    def of_kind(self, *kinds: str) -> list[Event]:
        return [event for event in self.events if event.move.kind in kinds]


class Walker:
    """Walks iterations of the loops of one program."""

    def __init__(self, facts: Facts, moves: Moves) -> None:
        self.facts = facts
        self.graph = facts.graph
        self.moves = moves
        self._matters: dict[int, bool] = {}
        self._unit_matters: dict[int, bool] = {}
        self._assigned: dict[int, tuple[Node, ...]] = {}
        self._frames: dict[tuple[object, ...], Frame] = {}
        self._events: dict[tuple[int, int], Event] = {}
        self._made: dict[int, bool] = {}

    def ways(self, loop: Node, unit: Unit) -> tuple[Way, ...]:
        """Every way through one iteration of ``loop``, which stands in ``unit``."""
        self._frames.clear()
        self._events.clear()
        self._loop = loop
        found: list[Way] = []
        for cls in self._classes_of_self(unit) or [None]:
            frame = Frame(unit, cls=cls)
            states = [Way()]
            if isinstance(loop, nodes.While):
                states = self._expression(loop.test, frame, states)
            found.extend(self._block(body_of(loop), frame, states))
        return tuple(_distinct(found))

    def _classes_of_self(self, unit: Unit) -> list[Class | None]:
        if unit.owner is None or unit.self_name is None:
            return []
        below = [unit.owner, *self.graph.values.all_below(unit.owner)]
        made = [cls for cls in below if id(cls) in self.instantiated and self._runs(cls, unit)]
        return list(made) or [unit.owner]

    def _runs(self, cls: Class, unit: Unit) -> bool:
        """Whether an object of ``cls`` has this method, and not another in its place."""
        for at in self.graph.values.mro(cls):
            if unit.name in at.methods:
                return at.methods[unit.name] is unit or self._calls_super(at.methods[unit.name])
        return True

    @staticmethod
    def _calls_super(unit: Unit) -> bool:
        return any(dotted(call.func) == "super" for call in unit.calls)

    @cached_property
    def instantiated(self) -> frozenset[int]:
        """Classes of which this program makes objects."""
        found = set()
        for call, _ in self.facts.calls:
            for origin in self.graph.values.of(call):
                if isinstance(origin, Instance) and origin.call is call:
                    found.add(id(origin.cls))
        return frozenset(found)

    def may_run(self, unit: Unit) -> bool:
        """Whether this program has an object on which a method can run; true of functions."""
        if unit.owner is None or not self.instantiated:
            return True
        known = self._made.get(id(unit.owner))
        if known is None:
            below = [unit.owner, *self.graph.values.all_below(unit.owner)]
            known = self._made[id(unit.owner)] = any(id(c) in self.instantiated for c in below)
        return known

    # -- statements -------------------------------------------------------------------------

    def _block(self, body: list[Node], frame: Frame, states: list[Way]) -> list[Way]:
        for statement in body:
            running = [state for state in states if not state.end]
            if not running:
                break
            ended = [state for state in states if state.end]
            states = _distinct([*ended, *self._statement(statement, frame, running)])
        return states

    def _statement(self, node: Node, frame: Frame, states: list[Way]) -> list[Way]:
        match node:
            case nodes.Continue():
                return [replace(s, end="continue") for s in states]
            case nodes.Break():
                return [replace(s, end="break") for s in states]
            case nodes.Return():
                if node.value is not None:
                    states = self._expression(node.value, frame, states)
                return [replace(s, end="return") for s in states]
            case nodes.Raise():
                return []
        if not self._statement_matters(node):
            return self._forget(node, frame, states)
        match node:
            case nodes.If():
                return self._branch(node, frame, states)
            case nodes.For() | nodes.While():
                head = node.iter if isinstance(node, nodes.For) else node.test
                states = self._expression(head, frame, states)
                states = self._forget(node, frame, states)
                inside = self._block(list(node.body), frame, states)
                inside = [
                    replace(s, end="") if s.end in ("continue", "break") else s for s in inside
                ]
                return self._block(list(node.orelse), frame, inside)
            case nodes.With():
                for expression, _ in node.items:
                    states = self._expression(expression, frame, states)
                return self._block(list(node.body), frame, states)
            case nodes.Try():
                states = self._block([*node.body, *node.orelse], frame, states)
                running = [replace(s, end="") for s in states]
                after = self._block(list(node.finalbody), frame, running)
                if len(after) == len(states):
                    return [
                        replace(a, end=a.end or s.end) for a, s in zip(after, states, strict=True)
                    ]
                return after
            case nodes.Match():
                states = self._expression(node.subject, frame, states)
                arms = [self._block(list(case.body), frame, states) for case in node.cases]
                return [state for arm in arms for state in arm] or states
            case nodes.FunctionDef() | nodes.ClassDef():
                return states
        states = self._expression(node, frame, states)
        return self._forget(node, frame, states)

    def _branch(self, node: nodes.If, frame: Frame, states: list[Way]) -> list[Way]:
        states = self._expression(node.test, frame, states)
        found: list[Way] = []
        for state in states:
            truth = self.truth(node.test, frame, state.known)
            for holds, body in ((True, node.body), (False, node.orelse)):
                if truth is (not holds):
                    continue
                taken = replace(
                    state,
                    known={**state.known, **dict(self._literals(node.test, holds, frame))},
                    decided=(*state.decided, (node.test, holds)),
                )
                found.extend(self._block(list(body), frame, [taken]))
        return found

    def _forget(self, node: Node, frame: Frame, states: list[Way]) -> list[Way]:
        """What is assigned here may have decided a test before; it does so no longer."""
        targets = self._assigned.get(id(node))
        if targets is None:
            targets = self._assigned[id(node)] = tuple(
                inside
                for inside in walk_scope(node)
                if isinstance(inside, nodes.AssignName | nodes.AssignAttr)
            )
        if not targets:
            return states
        names = {key(target, frame) for target in targets}
        return [
            replace(s, known={k: v for k, v in s.known.items() if not any(n in k for n in names)})
            if any(n in k for n in names for k in s.known)
            else s
            for s in states
        ]

    # -- what matters -----------------------------------------------------------------------

    def _statement_matters(self, node: Node) -> bool:
        known = self._matters.get(id(node))
        if known is None:
            known = self._matters[id(node)] = any(
                isinstance(inside, _LEAVING)
                or bool(self.moves.of(inside))
                or (isinstance(inside, nodes.Call) and self._call_matters(inside))
                for inside in walk_scope(node)
            )
        return known

    def _call_matters(self, call: nodes.Call) -> bool:
        units = [*self.graph.targets_of(call), *self.moves.closures(call)]
        return any(self.moves.kinds(unit) for unit in units)

    # -- expressions ------------------------------------------------------------------------

    def _expression(self, node: Node, frame: Frame, states: list[Way]) -> list[Way]:
        if not self._statement_matters(node):
            return states
        for inside in self.facts.steps.sequence(node):
            if isinstance(inside, nodes.Call):
                states = self._call(inside, node, frame, states)
            elif inside is node and isinstance(
                inside, nodes.Assign | nodes.AugAssign | nodes.AnnAssign | nodes.Delete
            ):
                states = self._happen(inside, frame, states)
        return states

    def _call(self, call: nodes.Call, whole: Node, frame: Frame, states: list[Way]) -> list[Way]:
        tests = [c for c in conditions(call) if c.exit is None and is_within(c.test, whole)]
        tests = [c for c in tests if c.test is not whole]
        passing: list[Way] = []
        skipping: list[Way] = []
        for state in states:
            truths = [self.truth(c.test, frame, state.known) for c in tests]
            false = any(t is (not c.holds) for t, c in zip(truths, tests, strict=True))
            (skipping if false or state.end else passing).append(state)
        if not passing:
            return states
        for closure in self.moves.closures(call):
            inner = self._frame(closure, call, frame, None, handed=True)
            if inner is not None:
                passing = self._enter(inner, passing)
        passing = self._happen(call, frame, passing)
        if self._call_matters(call) and not self.moves.of(call):
            passing = self._entered(call, frame, passing)
        return [*skipping, *passing]

    def _happen(self, node: Node, frame: Frame, states: list[Way]) -> list[Way]:
        moves = self.moves.of(node)
        if not moves:
            return states
        events = tuple(self._event(move, frame) for move in moves)
        return [replace(s, events=(*s.events, *events)) for s in states]

    def _event(self, move: Move, frame: Frame) -> Event:
        found = self._events.get((id(move), id(frame)))
        if found is None:
            found = self._events[id(move), id(frame)] = Event(move, frame, self._loop)
        return found

    # -- calls ------------------------------------------------------------------------------

    def _entered(self, call: nodes.Call, frame: Frame, states: list[Way]) -> list[Way]:
        receiver = self._receiver_key(call, frame)
        found: list[Way] = []
        for state in states:
            choices = list(self._choices(call, frame, state.classes.get(receiver)))
            if not choices or not any(self.moves.kinds(unit) for unit, _ in choices):
                found.append(state)
                continue
            for unit, cls in choices:
                taken = state
                if receiver and cls is not None and len(choices) > 1:
                    taken = replace(state, classes={**state.classes, receiver: cls})
                inner = self._frame(unit, call, frame, cls)
                if inner is None or not self.moves.kinds(unit):
                    found.append(taken)
                else:
                    found.extend(self._enter(inner, [taken]))
        return found

    def _enter(self, frame: Frame, states: list[Way]) -> list[Way]:
        body = body_of(frame.unit.node)
        if isinstance(frame.unit.node, nodes.FunctionDef):
            states = self._block(body, frame, states)
            return [replace(s, end="") if s.end == "return" else s for s in states]
        return self._expression(body[0], frame, states)

    def _frame(
        self,
        unit: Unit,
        call: nodes.Call,
        caller: Frame,
        cls: Class | None,
        *,
        handed: bool = False,
    ) -> Frame | None:
        if not unit.is_function or caller.enters(unit) or len(caller.chain) >= DEEPEST:
            return None
        known = self._frames.get((id(unit), id(call), id(caller), id(cls)))
        if known is None:
            serial = f"#{len(self._frames) + 1}"
            known = Frame(unit, serial, call, caller, cls, handed)
            self._frames[id(unit), id(call), id(caller), id(cls)] = known
        return known

    def _receiver_key(self, call: nodes.Call, frame: Frame) -> str:
        func = call.func
        if isinstance(func, nodes.Attribute) and not isinstance(func.expr, nodes.Call):
            return key(func.expr, frame)
        return key(func, frame) if isinstance(func, nodes.Name) else ""

    def _choices(
        self, call: nodes.Call, frame: Frame, chosen: Class | None
    ) -> Iterator[tuple[Unit, Class | None]]:
        """The units that the call may enter on this way, each with the class of its object."""
        func = call.func
        if isinstance(func, nodes.Attribute):
            own = self._own_class(func.expr, frame)
            if own is not None:
                above = _after(self.graph.values.mro(own), frame) if _is_super(func.expr) else None
                unit = self._method(above or self.graph.values.mro(own), func.attrname)
                if unit is not None:
                    yield unit, own
                    return
        seen: set[tuple[int, int]] = set()
        for cls in self._receiver_classes(func, frame, chosen):
            name = func.attrname if isinstance(func, nodes.Attribute) else "__call__"
            unit = self._method(self.graph.values.mro(cls), name) or (
                self._method(self.graph.values.mro(cls), "forward") if name == "__call__" else None
            )
            if unit is not None and (id(unit), id(cls)) not in seen:
                seen.add((id(unit), id(cls)))
                yield unit, cls
        if seen:
            return
        for unit in self.graph.targets_of(call):
            yield unit, unit.owner

    def _own_class(self, receiver: Node, frame: Frame) -> Class | None:
        """The class of ``self`` (or ``super()``), followed to the frame that knows it."""
        if _is_super(receiver):
            return frame.cls
        written = resolve(receiver, frame)
        if (
            isinstance(written.node, nodes.Name)
            and written.node.name == written.frame.unit.self_name
        ):
            return written.frame.cls
        if isinstance(receiver, nodes.Name) and receiver.name == frame.unit.self_name:
            return frame.cls
        return None

    def _receiver_classes(self, func: Node, frame: Frame, chosen: Class | None) -> Iterator[Class]:
        if chosen is not None:
            yield chosen
            return
        receiver = func.expr if isinstance(func, nodes.Attribute) else func
        seen: set[int] = set()
        for origin in self.graph.origins(resolve(receiver, frame).node):
            if isinstance(origin, Instance) and id(origin.cls) not in seen:
                seen.add(id(origin.cls))
                yield origin.cls

    @staticmethod
    def _method(mro: list[Class], name: str) -> Unit | None:
        return next((at.methods[name] for at in mro if name in at.methods), None)

    # -- tests ------------------------------------------------------------------------------

    def truth(self, test: Node, frame: Frame, known: dict[str, bool]) -> bool | None:
        """Whether a test holds, as far as this way has decided it before."""
        written = resolve(test, frame)
        test, frame = written.node, written.frame
        match test:
            case nodes.Const():
                return bool(test.value)
            case nodes.UnaryOp(op="not"):
                inner = self.truth(test.operand, frame, known)
                return None if inner is None else not inner
            case nodes.BoolOp():
                stop = test.op == "or"
                truths = [self.truth(value, frame, known) for value in test.values]
                if stop in truths:
                    return stop
                return None if None in truths else not stop
            case nodes.Compare() if _asks_for_none(test):
                op = test.ops[0][0]
                operand = resolve(test.left, frame)
                is_none = known.get(f"{key(operand.node, operand.frame)} is None")
                if isinstance(operand.node, nodes.Const):
                    is_none = operand.node.value is None
                elif isinstance(operand.node, nodes.Call | nodes.Dict | nodes.List | nodes.Tuple):
                    is_none = False
                return None if is_none is None else is_none is (op in ("is", "=="))
            case nodes.Compare(ops=[("!=", right)]):
                equal = known.get(f"({key(test.left, frame)} == {key(right, frame)})")
                return None if equal is None else not equal
        return known.get(key(test, frame))

    def _literals(self, test: Node, holds: bool, frame: Frame) -> Iterator[tuple[str, bool]]:
        """What is known once ``test`` has come out as ``holds``."""
        written = resolve(test, frame)
        test, frame = written.node, written.frame
        match test:
            case nodes.UnaryOp(op="not"):
                yield from self._literals(test.operand, not holds, frame)
                return
            case nodes.BoolOp():
                if holds is (test.op == "and"):
                    for value in test.values:
                        yield from self._literals(value, holds, frame)
                yield key(test, frame), holds
                return
            case nodes.Compare() if _asks_for_none(test):
                is_none = holds is (test.ops[0][0] in ("is", "=="))
                operand = key(test.left, frame)
                yield f"{operand} is None", is_none
                yield operand, not is_none
                return
            case nodes.Compare(ops=[("!=", right)]):
                yield f"({key(test.left, frame)} == {key(right, frame)})", not holds
                return
        text = key(test, frame)
        yield text, holds
        if holds and isinstance(test, nodes.Name | nodes.Attribute):
            yield f"{text} is None", False


def _asks_for_none(test: nodes.Compare) -> bool:
    if len(test.ops) != 1:
        return False
    op, right = test.ops[0]
    return (
        op in ("is", "is not", "==", "!=")
        and isinstance(right, nodes.Const)
        and right.value is None
    )


def _is_super(node: Node) -> bool:
    return isinstance(node, nodes.Call) and dotted(node.func) == "super"


def _after(mro: list[Class], frame: Frame) -> list[Class]:
    """The classes above the one whose code is running."""
    owner = frame.unit.owner
    return mro[mro.index(owner) + 1 :] if owner in mro else []


def _distinct(states: list[Way]) -> list[Way]:
    """Without ways that cannot be told apart; no more than can be looked through."""
    found: dict[tuple[object, ...], Way] = {}
    for state in states:
        same = (state.events, state.end, state.decided, tuple(state.classes.items()))
        found.setdefault(same, state)
    if len(found) <= MOST_WAYS:
        return list(found.values())
    shorter: dict[tuple[object, ...], Way] = {}
    for state in found.values():
        shorter.setdefault((state.events, state.end, tuple(state.classes.items())), state)
    return list(shorter.values())[:MOST_WAYS]


__all__ = ["Event", "Walker", "Way", "body_of"]
