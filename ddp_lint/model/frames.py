"""Layer 8, frames: what a name stands for on one particular way of calls.

The origins of a parameter are those of all callers together.  On one way through a program it
has one: what the call on that way passes.  A frame is a unit entered by a known call, and an
expression in a frame can be followed to the caller that wrote it down.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from astroid import nodes

from ddp_lint.model.calls import REMOTE_CALLS, CallGraph
from ddp_lint.model.modules import Class, Unit
from ddp_lint.model.origins import Origins, is_none
from ddp_lint.model.passing import argument_for
from ddp_lint.model.tree import Node, dotted, elements

_MOST_STEPS = 12


@dataclass(frozen=True, eq=False)
class Frame:
    """``unit`` as it is entered by ``call`` from ``caller``; the outermost has neither.

    ``cls`` is the class of its object, where that is known.  ``handed`` says that somebody else
    makes the call (a closure given to an optimizer), so that no parameter is known.
    """

    unit: Unit
    serial: str = ""
    call: nodes.Call | None = None
    caller: Frame | None = None
    cls: Class | None = None
    handed: bool = False

    @property
    def chain(self) -> tuple[nodes.Call, ...]:
        """The calls that lead here, outermost first."""
        if self.caller is None or self.call is None:
            return ()
        return (*self.caller.chain, self.call)

    @property
    def outward(self) -> Iterator[Frame]:
        at: Frame | None = self
        while at is not None:
            yield at
            at = at.caller

    def enters(self, unit: Unit) -> bool:
        """Whether ``unit`` is being run already: a recursion adds nothing."""
        return any(frame.unit is unit for frame in self.outward)


@dataclass(frozen=True)
class Written:
    """An expression and the frame whose names it uses."""

    node: Node
    frame: Frame


def resolve(node: Node, frame: Frame) -> Written:
    """Follow ``node`` to where it is written down: through parameters, closures and aliases."""
    for _ in range(_MOST_STEPS):
        if not isinstance(node, nodes.Name):
            break
        further = _one_step(node.name, frame)
        if further is None:
            break
        if further.node is node and further.frame is frame:
            break
        node, frame = further.node, further.frame
    return Written(node, frame)


def _one_step(name: str, frame: Frame) -> Written | None:
    unit = frame.unit
    bindings = unit.bindings.get(name)
    if bindings is None or name in unit.globals:
        return _in_enclosing(name, frame)
    if all(binding.path == ("param",) for binding in bindings):
        return _argument(name, frame)
    if len(bindings) != 1 or bindings[0].path != ():
        return None
    value = bindings[0].value
    is_alias = isinstance(value, nodes.Name | nodes.Attribute)
    if value is not None and is_alias and dotted(value).partition(".")[0] != name:
        return Written(value, frame)
    return None


def _in_enclosing(name: str, frame: Frame) -> Written | None:
    """A name of the function around a nested one, where that function is being run."""
    outer = frame.unit.outer
    while outer is not None:
        for at in frame.outward:
            if at.unit is outer and name in outer.bindings and outer.is_function:
                return _one_step(name, at)
        outer = outer.outer
    return None


def _argument(name: str, frame: Frame) -> Written | None:
    if frame.call is None or frame.caller is None or frame.handed:
        return None
    if name == frame.unit.self_name:
        return _receiver(frame)
    given = argument_for(frame.call, frame.unit, name)
    if given is None:
        return None
    return Written(given, frame if given is frame.unit.default_of(name) else frame.caller)


def _receiver(frame: Frame) -> Written | None:
    assert frame.call is not None
    assert frame.caller is not None
    func = frame.call.func
    if frame.unit.name in ("__call__", "forward") and not (
        isinstance(func, nodes.Attribute) and func.attrname == frame.unit.name
    ):
        return Written(func, frame.caller)
    if isinstance(func, nodes.Attribute) and func.attrname in REMOTE_CALLS:
        func = func.expr  # the method of an actor
    if isinstance(func, nodes.Attribute) and not isinstance(func.expr, nodes.Call):
        return Written(func.expr, frame.caller)
    return None


def origins_in(graph: CallGraph, node: Node, frame: Frame) -> Origins:
    """The origins of an expression on this way of calls, without a plain ``None``."""
    found = graph.origins(resolve(node, frame).node)
    return frozenset(origin for origin in found if not is_none(origin)) or found


def key(node: Node, frame: Frame) -> str:
    """A text that is equal for expressions that name the same thing on one way of calls."""
    written = resolve(node, frame)
    node, frame = written.node, written.frame
    match node:
        case nodes.Const():
            return repr(node.value)
        case nodes.Name() | nodes.AssignName():
            return _name_key(node.name, frame)
        case nodes.Attribute() | nodes.AssignAttr():
            return f"{key(node.expr, frame)}.{node.attrname}"
        case nodes.UnaryOp():
            return f"({node.op} {key(node.operand, frame)})"
        case nodes.BinOp():
            return f"({key(node.left, frame)} {node.op} {key(node.right, frame)})"
        case nodes.BoolOp():
            return f"({f' {node.op} '.join(key(v, frame) for v in node.values)})"
        case nodes.Compare():
            parts = [key(node.left, frame)]
            for op, right in node.ops:
                parts += [op, key(right, frame)]
            return f"({' '.join(parts)})"
        case nodes.Subscript():
            return f"{key(node.value, frame)}[{key(node.slice, frame)}]"
        case nodes.Call():
            given = [key(a, frame) for a in node.args]
            given += [f"{k.arg}={key(k.value, frame)}" for k in node.keywords]
            return f"{key(node.func, frame)}({', '.join(given)})"
        case nodes.Tuple() | nodes.List():
            return f"[{', '.join(key(e, frame) for e in elements(node))}]"
    return f"<{id(node)}>"


def _name_key(name: str, frame: Frame) -> str:
    at: Frame | None = frame
    while at is not None and name == at.unit.self_name:
        if at.cls is None and at.unit.owner is None:
            break
        if at.caller is None or at.call is None or not _is_super(at.call):
            return f"self/{(at.cls or at.unit.owner).name}"  # type: ignore[union-attr]
        at = at.caller
        name = at.unit.self_name or name
    unit: Unit | None = frame.unit
    while unit is not None and unit.is_function:
        if name in unit.globals:
            break
        if name in unit.bindings:
            running = next((f for f in frame.outward if f.unit is unit), None)
            return f"{name}@{unit.name}{running.serial if running else ''}"
        unit = unit.outer
    return f"{name}@{frame.unit.module.key}"


def _is_super(call: nodes.Call) -> bool:
    func = call.func
    return (
        isinstance(func, nodes.Attribute)
        and isinstance(func.expr, nodes.Call)
        and dotted(func.expr.func) == "super"
    )
