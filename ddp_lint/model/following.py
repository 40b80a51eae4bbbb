"""Layer 9, following: where a value goes within one iteration of a step loop, and into the next.

A value is followed from the expression that makes it: through what it is computed with, names,
attributes of one object, containers by their keys, into the functions of the project that it is
handed to and back to their callers.  Text, logs and what nobody can look into end the way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from astroid import nodes

from ddp_lint.model.facts import Facts
from ddp_lint.model.flow import loops_around, reaching
from ddp_lint.model.modules import Unit
from ddp_lint.model.origins import Made
from ddp_lint.model.passing import argument_for
from ddp_lint.model.receivers import readers_of, shows
from ddp_lint.model.steps import DEEPEST_CALL, StepLoop
from ddp_lint.model.torch_api import FACTORIES
from ddp_lint.model.tree import (
    Node,
    ancestors,
    dotted,
    elements,
    entries,
    is_within,
    precedes,
    statement,
    walk,
    walk_scope,
)

Chain = tuple[tuple[nodes.Call, Unit], ...]

#: A key that cannot be told.
ANY = object()
#: What of a tensor is no value of its own.
_ABOUT = frozenset({"size", "dim", "numel", "shape", "dtype", "device", "ndim", "keys"})
#: Functions and methods of which nothing comes back, or only a text.
_ENDS = frozenset(
    {"print", "format", "str", "repr", "len", "isinstance", "type", "write", "log", "info",
     "debug", "warning", "error", "join", "add_scalar", "add_scalars", "set_postfix",
     "set_description", "save"}
)  # fmt: skip
_PUTTING = frozenset({"append", "extend", "insert", "add", "update", "appendleft", "setdefault"})
#: What hands its arguments on, element by element or as one.
_SAME = frozenset({"list", "tuple", "dict", "sorted", "reversed", "set", "iter"})
#: What is computed of numbers alone, here as well as there.
_ARITHMETIC = frozenset({"float", "int", "bool", "abs", "round", "sum", "pow"})
_NUMPY_ARITHMETIC = frozenset({"array", "asarray", "float32", "float64", "int32", "int64", "mean",
                               "sum", "clip", "abs", "exp", "log", "sqrt", "maximum", "minimum",
                               "isnan", "isfinite", "isinf", "where"})  # fmt: skip
#: Functions of torch that take a tensor where they take a number.
_TENSOR_TOO = frozenset(
    {"clamp", "clamp_", "clip", "add", "add_", "sub", "sub_", "mul", "mul_", "div", "div_", "pow",
     "where", "max", "min", "maximum", "minimum", "lerp", "masked_fill", "stack", "cat", "tensor",
     "as_tensor", "true_divide", "log", "exp", "sqrt", "abs", "isnan", "isfinite", "isinf"}
)  # fmt: skip
_LINEAR = frozenset({"sum", "mean", "scale", "to", "float", "cuda", "half", "squeeze", "view",
                     "reshape", "type", "type_as", "div", "div_"})  # fmt: skip
_FINITE = frozenset({"isnan", "isfinite", "isinf"})


@dataclass(frozen=True)
class Part:
    """``node``, or what lies below ``keys`` in it, on the way of calls ``chain``.

    ``via`` says what it has been through: "host", an algorithm that runs there; "branch", a
    decision of Python; "finite" and "beyond", the question whether it is finite, or larger than
    a constant; "kept", what outlasts the step; "bounded", ``min`` or ``max`` of Python; "added",
    a sum with a tensor; "size", a bound of a slice, which only a number of the host can be;
    "lost", what nobody can look into.  "array" says that it is more than one number.
    """

    node: Node
    chain: Chain = ()
    keys: tuple[Any, ...] = ()
    via: frozenset[str] = frozenset()

    @property
    def key(self) -> tuple[Any, ...]:
        return id(self.node), tuple(id(call) for call, _ in self.chain), self.keys, self.via

    def at(self, node: Node, *via: str, keys: tuple[Any, ...] | None = None) -> Part:
        return replace(
            self, node=node, via=self.via | set(via), keys=self.keys if keys is None else keys
        )

    def chosen(self, node: Node) -> Part:
        """What a decision by this value makes of ``node``: where an algorithm of the host has
        given the value, that remains what counts."""
        return self.at(node, *(() if "host" in self.via else ("branch",)), keys=())

    def through(self, function: str) -> Part:
        """This part as an argument: what was added is no longer, unless that is linear."""
        if "added" not in self.via or function in _LINEAR:
            return self
        return replace(self, via=self.via - {"added"})


class Following:
    """The ways of values through the iterations of one loop."""

    def __init__(self, facts: Facts, loop: StepLoop) -> None:
        self.facts = facts
        self.loop = loop

    def unit_at(self, part: Part) -> Unit:
        return self.facts.values.unit_of(part.node)

    # -- one step further -------------------------------------------------------------------

    def further(self, part: Part) -> Iterator[Part]:
        """Where the value goes from ``part``, one construct up."""
        at, up = part.node, part.node.parent
        match up:
            case nodes.Keyword(parent=nodes.Call() as call):
                yield from self._handed(part, call)
            case nodes.Call() if at is not up.func:
                yield from self._handed(part, up)
            case nodes.Attribute():
                yield from self._attribute(part, up)
            case nodes.Subscript():
                yield from self._subscript(part, up)
            case nodes.Slice():
                yield from self._bounds(part, up)
            case nodes.Compare():
                if not any(op in ("is", "is not") for op, _ in up.ops):
                    yield part.at(up, *tested_for(up))
            case nodes.BinOp():
                text = isinstance(up.left, nodes.Const) and isinstance(up.left.value, str)
                if not (up.op == "%" and (text or isinstance(up.left, nodes.JoinedStr))):
                    other = up.right if at is up.left else up.left
                    yield part.at(up, *self._added(part, up.op, other))
            case nodes.UnaryOp() | nodes.BoolOp() | nodes.NamedExpr():
                yield part.at(up)
                if isinstance(up, nodes.NamedExpr) and at is up.value:
                    yield from self.bound(part, up.target)
            case nodes.IfExp():
                yield part.chosen(up) if at is up.test else part.at(up)
            case nodes.Tuple() | nodes.List() | nodes.Set() if not _is_target(up):
                index = next(i for i, one in enumerate(elements(up)) if one is at)
                yield part.at(up, keys=(index, *part.keys))
            case nodes.Dict():
                key = next((key for key, value in entries(up) if value is at), None)
                if isinstance(key, nodes.DictUnpack):
                    yield part.at(up)
                elif key is not None:
                    yield part.at(up, keys=(_constant(key), *part.keys))
            case nodes.Comprehension() if at is up.iter:
                yield from self.bound(self._element(part), up.target)
            case nodes.ListComp() | nodes.SetComp() | nodes.GeneratorExp() if at is up.elt:
                yield part.at(up, keys=(ANY, *part.keys))
            case nodes.DictComp() if at is up.value:
                yield part.at(up, keys=(ANY, *part.keys))
            case nodes.For() if at is up.iter:
                yield from self.bound(self._element(part), up.target)
            case nodes.Assign() if at is up.value:
                for target in up.targets:
                    yield from self.bound(part, target)
            case nodes.AnnAssign() if at is up.value:
                yield from self.bound(part, up.target)
            case nodes.AugAssign() if at is up.value:
                added = self._added(part, up.op[:-1], up.target)
                yield from self.bound(part.at(at, *added), up.target)
            case nodes.Return() if part.chain:
                yield Part(part.chain[-1][0], part.chain[:-1], part.keys, part.via)

    def _attribute(self, part: Part, up: nodes.Attribute) -> Iterator[Part]:
        name, call = up.attrname, up.parent
        if name in _ABOUT or (part.keys and part.keys[0] not in (ANY, name) and not _is_call(up)):
            return
        if not isinstance(call, nodes.Call) or call.func is not up:
            yield part.at(up)
        elif name in ("get", "pop") and call.args and part.keys:
            if _matches(part.keys[0], _constant(call.args[0])):
                yield part.at(call, keys=part.keys[1:])
        elif name == "values" and part.keys:
            yield part.at(call, keys=(ANY, *part.keys[1:]))
        elif name == "items" and part.keys:
            yield part.at(call, keys=(ANY, 1, *part.keys[1:]))
        elif name not in _PUTTING:
            yield part.through(name).at(call, *(("finite",) if name in _FINITE else ()))

    def _subscript(self, part: Part, up: nodes.Subscript) -> Iterator[Part]:
        if part.node is up.value:
            if isinstance(up.slice, nodes.Slice) or not part.keys:
                yield part.at(up)
            elif _matches(part.keys[0], _constant(up.slice)):
                yield part.at(up, keys=part.keys[1:])
            return
        host = () if self.facts.tensors.on_device(up.value) else ("host",)
        if _is_target(up):
            yield from self.put(part.at(up, *host), up.value, ())
        else:
            yield part.at(up, *host, keys=())

    def _bounds(self, part: Part, up: nodes.Slice) -> Iterator[Part]:
        """``x[:, start:stop]``"""
        whole = next((at for _, at in ancestors(up) if isinstance(at, nodes.Subscript)), None)
        if whole is None:
            return
        if self.facts.tensors.on_device(whole.value):
            yield part.at(up, "size")
        elif not _is_target(whole):
            yield part.at(whole, "host", keys=())

    def _added(self, part: Part, op: str, other: Node) -> tuple[str, ...]:
        """A number of the host that is added to a tensor has no part in its gradient."""
        on_device = self.facts.tensors.on_device
        is_sum = op in ("+", "-") and on_device(other) and not on_device(part.node)
        return ("added",) if is_sum else ()

    # -- calls ------------------------------------------------------------------------------

    def _handed(self, part: Part, call: nodes.Call) -> Iterator[Part]:
        targets = [unit for unit in self.facts.graph.targets_of(call) if unit.is_function]
        if targets:
            for target in targets:
                yield from self._entered(part, call, target)
            return
        last = str(getattr(call.func, "attrname", getattr(call.func, "name", "")))
        names = self.facts.names(call)
        if last in _PUTTING and isinstance(call.func, nodes.Attribute):
            key = () if last in ("update", "extend") else (ANY,)
            yield from self.put(part.at(call), call.func.expr, key)
        elif last == "enumerate":
            inner = part.keys[1:] if part.keys else ()
            yield part.at(call, *self._iterated(part), keys=(ANY, 1, *inner))
        elif last == "zip":
            index = next((i for i, one in enumerate(call.args) if one is part.node), 0)
            inner = part.keys[1:] if part.keys else ()
            yield part.at(call, *self._iterated(part), keys=(ANY, index, *inner))
        elif last in _SAME:
            yield part.at(call)
        elif last not in _ENDS or _computes(names):
            if isinstance(call.parent, nodes.Expr) and not names and not shows(call):
                yield part.at(call, "lost")
            through = self._through(part, call, names, last)
            yield part.through(last).at(call, *through, keys=())
            yield from self._given_out(part, call)

    def _through(
        self, part: Part, call: nodes.Call, names: frozenset[str], last: str
    ) -> Iterator[str]:
        """What a call that cannot be entered does with a value that is handed to it."""
        if last in _FINITE:
            yield "finite"
        elif any(name in ("builtins.min", "builtins.max") for name in names):
            yield "bounded"
        elif self.facts.tensors.on_device(part.node):
            return
        elif any(name.startswith("builtins.") for name in names):
            if last not in _ARITHMETIC:
                yield "host"
        elif any(name.startswith("math.") for name in names):
            return
        elif any(name.startswith("numpy.") for name in names):
            if last not in _NUMPY_ARITHMETIC:
                yield "host"
        elif _computes(names) or last in _TENSOR_TOO or self._is_module(call):
            if "array" not in part.via and (names & FACTORIES or last not in _TENSOR_TOO):
                yield "host"
        else:
            yield "host"

    def _is_module(self, call: nodes.Call) -> bool:
        return any(
            isinstance(origin, Made) and origin.name.startswith("torch.nn.")
            for origin in self.facts.origins(call.func)
        )

    def _entered(self, part: Part, call: nodes.Call, target: Unit) -> Iterator[Part]:
        if len(part.chain) >= DEEPEST_CALL or any(unit is target for _, unit in part.chain):
            return
        caller = self.unit_at(part)
        for name in target.parameters:
            if argument_for(call, target, name) is not part.node:
                continue
            for use in _names(target, name):
                if any(b.path == ("param",) for b in reaching(target, name, use)):
                    yield Part(use, (*part.chain, (call, caller)), part.keys, part.via)

    def _given_out(self, part: Part, call: nodes.Call) -> Iterator[Part]:
        """``search(path, costs)``, where ``path`` is an array of numpy for the answer."""
        if not isinstance(call.parent, nodes.Expr) or "array" not in part.via:
            return
        unit = self.unit_at(part)
        for argument in call.args:
            if isinstance(argument, nodes.Name) and argument is not part.node:
                made = [b.value for b in reaching(unit, argument.name, argument)]
                if any(
                    isinstance(value, nodes.Call)
                    and any(name.startswith("numpy.") for name in self.facts.names(value))
                    for value in made
                ):
                    yield from self.put(part.at(call, "host"), argument, ())

    def _element(self, part: Part) -> Part:
        """What a loop over the value gives."""
        return part.at(part.node, *self._iterated(part), keys=part.keys[1:])

    def _iterated(self, part: Part) -> tuple[str, ...]:
        """Python that goes over an array runs on the host."""
        plain = "array" in part.via and not part.keys
        return ("host",) if plain and not self.facts.tensors.on_device(part.node) else ()

    # -- names, attributes and containers ---------------------------------------------------

    def bound(self, part: Part, target: Node) -> Iterator[Part]:
        """Where the value is used under what it is assigned to."""
        match target:
            case nodes.AssignName():
                unit = self.unit_at(part)
                for use in self._uses(part, target.name):
                    if any(b.node is target for b in reaching(unit, target.name, use)):
                        yield part.at(use)
            case nodes.AssignAttr():
                yield from self._kept(part, target)
            case nodes.Subscript():
                key = _constant(target.slice)
                whole = self.facts.tensors.on_device(target.value)
                yield from self.put(part, target.value, () if whole else (key,))
            case nodes.Tuple() | nodes.List():
                for index, element in enumerate(elements(target)):
                    if not part.keys or _matches(part.keys[0], index):
                        yield from self.bound(replace(part, keys=part.keys[1:]), element)
            case nodes.Starred():
                yield from self.bound(part, target.value)

    def put(self, part: Part, container: Node, keys: tuple[Any, ...]) -> Iterator[Part]:
        """Where a container is used that the value is put into."""
        inside = part.at(part.node, "kept", keys=(*keys, *part.keys))
        if isinstance(container, nodes.Attribute):
            yield from self._kept(inside, container)
        elif isinstance(container, nodes.Name):
            here = statement(part.node)
            around = list(loops_around(here))
            for use in self._uses(part, container.name):
                again = any(loop in around for loop in loops_around(use))
                if statement(use) is not here and (again or precedes(here, use)):
                    yield inside.at(use)

    def _uses(self, part: Part, name: str) -> Iterator[nodes.Name]:
        """The uses of a name on this way, as far as they are part of an iteration."""
        unit = self.unit_at(part)
        at_top = not part.chain and not self.loop.is_hook
        for use in _names(unit, name):
            if not at_top or is_within(use, self.loop.node):
                yield use

    def _kept(self, part: Part, target: Node) -> Iterator[Part]:
        """Where the same attribute of the same object is read in an iteration."""
        unit, text = self.unit_at(part), dotted(target)
        if not isinstance(getattr(target, "expr", None), nodes.Name) or (
            unit.owner is None or text.partition(".")[0] != unit.self_name
        ):
            yield from self._given_to_another(part, target)
        if unit.owner is None or text.partition(".")[0] != unit.self_name:
            return
        for happening in self.loop.happenings:
            node = happening.node
            if (
                isinstance(node, nodes.Attribute)
                and node is not target
                and node.attrname == getattr(target, "attrname", "")
                and happening.unit.owner is unit.owner
                and dotted(node) == text
            ):
                yield Part(node, happening.chain, part.keys, part.via | {"kept"})

    def _given_to_another(self, part: Part, target: Node) -> Iterator[Part]:
        """Where the object that the attribute belongs to reads it in an iteration: the model in
        its forward pass, unless that cannot be followed, or runs in copies on other GPUs."""
        readers = readers_of(self.facts, target)
        if readers is None:
            yield part.at(target, "lost")
            return
        name = getattr(target, "attrname", "")
        for happening in self.loop.happenings:
            node = happening.node
            if (
                isinstance(node, nodes.Attribute)
                and node.attrname == name
                and happening.unit.owner in readers
                and dotted(node.expr) == happening.unit.self_name
            ):
                yield Part(node, happening.chain, part.keys, part.via | {"kept"})


def _computes(names: frozenset[str]) -> bool:
    """Whether it is a function of a library that computes."""
    return any(name.startswith(("torch.", "math.", "numpy.")) for name in names)


def tested_for(node: Node) -> frozenset[str]:
    """What an expression asks of a value: whether it is finite, or beyond a constant."""
    if isinstance(node, nodes.Compare) and len(node.ops) == 1:
        left, (op, right) = node.left, node.ops[0]
        small = right if op in (">", ">=") else left if op in ("<", "<=") else None
        return frozenset({"beyond"} if isinstance(small, nodes.Const) else ())
    finite = any(
        isinstance(part, nodes.Call) and getattr(part.func, "attrname", "") in _FINITE
        for part in walk(node)
    )
    return frozenset({"finite"} if finite else ())


def _names(unit: Unit, name: str) -> Iterator[nodes.Name]:
    for node in walk_scope(unit.node):
        if isinstance(node, nodes.Name) and node.name == name:
            yield node


def _constant(node: Node) -> Any:
    return node.value if isinstance(node, nodes.Const) else ANY


def _matches(one: Any, other: Any) -> bool:
    if ANY in (one, other):
        return True
    return bool(one == other) or (isinstance(other, int) and other < 0)


def _is_call(node: nodes.Attribute) -> bool:
    return isinstance(node.parent, nodes.Call) and node.parent.func is node


def _is_target(node: Node) -> bool:
    """Whether a subscript or a tuple is assigned to."""
    up = node.parent
    if isinstance(up, nodes.Assign):
        return any(node is target for target in up.targets)
    return isinstance(up, nodes.AnnAssign | nodes.AugAssign | nodes.For) and node is up.target
