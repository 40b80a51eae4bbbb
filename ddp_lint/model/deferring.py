"""Layer 10, deferring: sums that may stay on the device until their loop is through.

``total += loss.item()`` may add the tensor instead where nothing asks for the number before the
loop ends; behind the loop the sum is made a number again, so that whatever comes then (a return,
a print, ``json.dump``) gets what it got before.  Which reads are worth it, see ``deferrals``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from astroid import nodes

from ddp_lint.finding import Edit
from ddp_lint.model.facts import Facts
from ddp_lint.model.flow import loops_around, reaching
from ddp_lint.model.modules import Unit
from ddp_lint.model.steps import Happening, StepLoop
from ddp_lint.model.tree import Loop, Node, dotted, is_within, position, statement, walk

Number = Literal["float", "int"]

#: Where a loss may have less than 32 bits: a sum of them would soon stop to grow.
_HALF = re.compile(r"\bhalf\b|float16|fp16|bf16|autocast|deepspeed", re.I)
#: What formats a tensor of one element as its number, unlike ``%s``, ``{!r}`` and ``{x=}``.
_AS_TEXT = re.compile(r"%[-+ #0-9.*]*[sra]|![sra]")
_MEANS = frozenset({"mean", "float", "double", "norm", "std", "var", "sqrt", "exp", "log"})
_COMPARES = frozenset({"eq", "ne", "gt", "lt", "ge", "le", "argmax", "argmin", "long", "int"})
_KEEPING = frozenset({"sum", "detach", "data", "squeeze", "view", "reshape", "all", "any", "abs",
                      "clone", "contiguous"})  # fmt: skip
#: What leaves no graph, and what gives at least 32 bits.
_DETACHING = frozenset({"detach", "data"})
_FULL = frozenset({"float", "double"})
_READ = re.compile(r"\s*\.\s*item\s*\(\s*\)$")
_DEEPEST = 6


@dataclass(frozen=True)
class Sum:
    """A sum that may collect tensors: ``kept`` adds one in place of its number.

    ``last`` is the outermost loop that does nothing with the sum but to add to it; behind that,
    ``readers`` get it.
    """

    name: str
    number: Number
    kept: Edit
    last: Loop
    readers: tuple[Node, ...]
    is_dead: bool

    @property
    def first_read(self) -> tuple[int, int]:
        """Where the sum is read first behind its loop; in the next round, if it comes to that."""
        behind = [position(use) for use in self.readers if position(use) > position(self.last)]
        return min(behind or map(position, self.readers), default=(0, 0))


def deferred(facts: Facts, loop: StepLoop, read: Node, value: Node) -> Sum | None:
    """The sum that lets ``read``, the ``.item()`` of ``value``, wait until after the loop."""
    at = statement(read)
    if not isinstance(at, nodes.AugAssign) or at.value is not read or at.op != "+=":
        return None
    unit, around = facts.values.unit_of(at), loop.node
    if not isinstance(at.target, nodes.AssignName) or isinstance(around, nodes.FunctionDef):
        return None
    if unit is not loop.unit or around.orelse or _is_part_of_a_step(facts, loop):
        return None
    name = at.target.name
    number = number_of(facts, value, loop, 0)
    uses = _uses(unit, name)
    if number is None or uses is None or not _starts_as_number(unit, name, at):
        return None
    inside = [use for use in uses if is_within(use, around)]
    if not all(_is_shown(use) and _is_seldom(facts, loop, use) for use in inside):
        return None
    kept = _kept(facts, loop, read, value, number)
    if kept is None:
        return None
    others = [use for use in uses if use not in inside]
    last = _last_loop(unit, name, around, others)
    readers = tuple(use for use in others if _may_follow(use, last))
    return Sum(name, number, kept, last, readers, is_dead=not uses)


def edits_for(facts: Facts, sums: Iterable[Sum]) -> tuple[Edit, ...]:
    """Edits that let all these sums collect tensors, and make them numbers again for those who
    get them, in the order in which they are wanted.

    What nobody reads becomes a number along with others, so that a row of sums stays alike.
    """
    edits: list[Edit] = []
    by_loop: dict[int, list[Sum]] = {}
    for one in sums:
        edits.append(one.kept)
        by_loop.setdefault(id(one.last), []).append(one)
    for group in by_loop.values():
        if any(one.readers for one in group):
            wanted = [one for one in group if one.readers or one.is_dead]
            wanted.sort(key=lambda one: (one.is_dead, one.first_read))
            lines = [f"{one.name} = {one.number}({one.name})" for one in wanted]
            edits.append(facts.insert_after(group[0].last, "\n".join(lines)))
    return tuple(edits)


def _last_loop(unit: Unit, name: str, around: Loop, others: list[Node]) -> Loop:
    """The outermost loop around ``around`` that neither starts the sum nor reads it by itself."""
    last = around
    started = [binding.node for binding in unit.bindings[name]]
    elsewhere = [node for node in (*others, *started) if not is_within(node, around)]
    for outer in loops_around(around):
        if outer.orelse or any(is_within(node, outer) for node in elsewhere):
            break
        last = outer
    return last


def _may_follow(use: Node, loop: Loop) -> bool:
    """Whether ``use`` may run after ``loop``: it stands below, or the two come again."""
    return position(loop) < position(use) or any(
        is_within(use, outer) for outer in loops_around(loop)
    )


def _is_part_of_a_step(facts: Facts, loop: StepLoop) -> bool:
    """Whether the loop is run by a step itself: the end of it comes as often."""
    others = [other.node for other in [*facts.steps.loops, *facts.steps.windows]]
    return any(is_within(loop.node, other) for other in others if other is not loop.node)


def _uses(unit: Unit, name: str) -> list[Node] | None:
    """Where the sum is read in its unit; None where it also belongs to somebody else."""
    if name in unit.globals or any(name in inner.globals for inner in unit.module.units):
        return None
    found: list[Node] = []
    for node in walk(unit.node):
        if isinstance(node, nodes.Global | nodes.Nonlocal) and name in node.names:
            return None
        if isinstance(node, nodes.DelName) and node.name == name:
            return None
        if isinstance(node, nodes.Name) and node.name == name:
            found.append(node)
    inner = [use for use in found if use.scope() is not unit.node]
    return None if inner else found


def _starts_as_number(unit: Unit, name: str, at: Node) -> bool:
    """Whether the sum is nothing but a zero that this statement adds to."""
    return all(
        binding.value is at
        or binding.node is at
        or (isinstance(binding.value, nodes.Const) and binding.value.value in (0, 0.0))
        for binding in unit.bindings.get(name, ())
    )


def _is_shown(use: Node) -> bool:
    """Whether it goes, perhaps divided, into a text, or to TensorBoard."""
    at, parent = use, use.parent
    while isinstance(parent, nodes.BinOp | nodes.UnaryOp) and not _is_template(parent):
        at, parent = parent, parent.parent
    if isinstance(parent, nodes.FormattedValue):
        return parent.conversion == -1 and at is parent.value
    if isinstance(parent, nodes.Tuple) and _is_template(parent.parent):
        return True
    if isinstance(parent, nodes.BinOp):
        return at is parent.right
    if isinstance(parent, nodes.Keyword):
        parent = parent.parent
    if not isinstance(parent, nodes.Call) or not isinstance(parent.func, nodes.Attribute):
        return False
    func = parent.func
    if func.attrname == "format":
        template = func.expr
        return isinstance(template, nodes.Const) and not _AS_TEXT.search(str(template.value))
    return func.attrname == "add_scalar"


def _is_template(node: Node | None) -> bool:
    """``"%.3f" % ...``"""
    return (
        isinstance(node, nodes.BinOp)
        and node.op == "%"
        and isinstance(node.left, nodes.Const)
        and isinstance(node.left.value, str)
        and not _AS_TEXT.search(node.left.value)
    )


def _is_seldom(facts: Facts, loop: StepLoop, use: Node) -> bool:
    """On some steps only: else the wait would merely have moved."""
    return facts.how_often(loop, Happening(use, loop.unit)) == "some steps"


def _kept(facts: Facts, loop: StepLoop, read: Node, value: Node, number: Number) -> Edit | None:
    """The tensor in place of its number, without its graph, in 32 bits."""
    module = loop.unit.module
    lines = module.source.lines
    first, last = read.lineno or 1, read.end_lineno or 1
    if first != last:
        return None
    text = lines[first - 1].encode()[read.col_offset : read.end_col_offset].decode()
    found = _READ.search(text)
    if found is None:
        return None
    given = ""
    if number == "float":
        if not _went_through(value, _DETACHING, loop.unit, 0):
            given += ".detach()"
        if _HALF.search(module.source.text) and not _went_through(value, _FULL, loop.unit, 0):
            given += ".float()"
    return facts.replace(read, text[: found.start()] + given)


def _went_through(value: Node, methods: frozenset[str], unit: Unit, depth: int) -> bool:
    """Whether one of these methods gave ``value``, and nothing else has come into it since."""
    if depth > _DEEPEST:
        return False
    if isinstance(value, nodes.Attribute):
        return value.attrname in methods
    if isinstance(value, nodes.Name):
        bindings = reaching(unit, value.name, value) if value.name in unit.bindings else []
        return bool(bindings) and all(
            binding.value is not None
            and not binding.path
            and _went_through(binding.value, methods, unit, depth + 1)
            for binding in bindings
        )
    if not isinstance(value, nodes.Call) or not isinstance(value.func, nodes.Attribute):
        return False
    if value.func.attrname in methods:
        return True
    alone = not value.args and value.func.attrname in _KEEPING | _MEANS
    return alone and _went_through(value.func.expr, methods, unit, depth + 1)


# -- what number it is ------------------------------------------------------------------------


def number_of(facts: Facts, value: Node, loop: StepLoop, depth: int) -> Number | None:
    """Whether one element of a tensor is a float or an int, where that is certain."""
    if depth > _DEEPEST:
        return None
    if isinstance(value, nodes.Compare):
        return "int"
    if isinstance(value, nodes.BinOp):
        if value.op == "/":
            return "float"
        sides = {number_of(facts, side, loop, depth + 1) for side in (value.left, value.right)}
        return "float" if "float" in sides else None
    if isinstance(value, nodes.Const):
        return "float" if isinstance(value.value, float) else None
    if _goes_back(facts, value, loop):
        return "float"
    if isinstance(value, nodes.Name):
        number = _only(_numbers_of_name(facts, value, loop, depth))
        return "float" if number is None and "loss" in value.name.lower() else number
    if isinstance(value, nodes.Call):
        return _number_of_call(facts, value, loop, depth)
    return None


def _number_of_call(facts: Facts, call: nodes.Call, loop: StepLoop, depth: int) -> Number | None:
    func = call.func
    said = func.attrname if isinstance(func, nodes.Attribute) else dotted(func)
    targets = facts.graph.targets_of(call)
    if targets:
        given = [
            number_of(facts, value, loop, depth + 1) if value is not None else None
            for target in targets
            if target.is_function
            for value in (getattr(back, "value", back) for back in target.returns)
        ]
        return _only(iter(given))
    if said in _MEANS or any(name.rpartition(".")[2] in _MEANS for name in facts.names(call)):
        return "float"
    if any(name.startswith("torch.nn.functional.") for name in facts.names(call)):
        return "float"
    if said in _COMPARES:
        return "int"
    if said in _KEEPING and isinstance(func, nodes.Attribute):
        of = call.args[0] if facts.names(call) and call.args else func.expr
        return number_of(facts, of, loop, depth + 1)
    return None


def _goes_back(facts: Facts, value: Node, loop: StepLoop) -> bool:
    """Whether a backward pass starts at it, as only one of floats can."""
    text = dotted(value)
    return bool(text) and any(
        dotted(part) == text
        for happening in loop.backwards
        if not happening.chain
        for part in walk(happening.node)
    )


def _numbers_of_name(
    facts: Facts, name: nodes.Name, loop: StepLoop, depth: int
) -> Iterator[Number | None]:
    unit = facts.values.unit_of(name)
    for binding in reaching(unit, name.name, name):
        if binding.path or binding.value is None:
            yield None
        else:
            yield number_of(facts, binding.value, loop, depth + 1)


def _only(answers: Iterator[Number | None]) -> Number | None:
    found = set(answers)
    return found.pop() if len(found) == 1 else None
