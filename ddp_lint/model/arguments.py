"""Layer 9, arguments: what a call passes for each parameter, also through dictionaries.

Loaders and samplers are told much in ``**options``, which a program fills step by step.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from astroid import nodes

from ddp_lint.finding import Edit
from ddp_lint.model.facts import Facts
from ddp_lint.model.flow import conditions
from ddp_lint.model.modules import FUNCTIONS, Unit
from ddp_lint.model.origins import Expression, Made, Member, Origin, Origins, Param, Result
from ddp_lint.model.tree import Node, elements, entries, position

_DEEPEST = 6

#: Units that were entered by a known call, innermost first.
Context: TypeAlias = tuple[tuple[Unit, nodes.Call], ...]


@dataclass
class Passed:
    """Values by name: those that may be passed, and the names that are passed on every way."""

    values: dict[str, list[Node]] = field(default_factory=lambda: defaultdict(list))
    always: set[str] = field(default_factory=set)
    complete: bool = True

    def set(self, name: str, value: Node, *, always: bool) -> None:
        if always:
            self.values[name] = [value]
            self.always.add(name)
        else:
            self.values[name].append(value)

    def merge(self, other: Passed) -> None:
        """Later entries over earlier ones."""
        for name, values in other.values.items():
            if name in other.always:
                self.values[name] = list(values)
                self.always.add(name)
            else:
                self.values[name].extend(values)
        self.complete &= other.complete


class Arguments:
    """The arguments of one call of something whose signature is known."""

    def __init__(self, passed: Passed) -> None:
        self._passed = passed

    @property
    def complete(self) -> bool:
        """Whether nothing else can be passed."""
        return self._passed.complete

    def given(self, name: str) -> list[Node]:
        """Every expression that may be passed for ``name``."""
        return list(self._passed.values.get(name, ()))

    def absent(self, name: str) -> bool:
        """Whether nothing is passed for ``name``, for certain."""
        return self.complete and not self.given(name)

    def always(self, name: str) -> bool:
        """Whether something is passed for ``name`` on every way."""
        return name in self._passed.always


class Calls:
    """Resolves the arguments of calls in one program."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self._known: dict[tuple[int, Context], Arguments] = {}
        self._filled: dict[Origin, list[tuple[str | None, Node]]] | None = None
        self._grown: dict[Origin, list[tuple[bool, Node]]] | None = None

    def origins(self, node: Node, context: Context) -> Origins:
        """The origins of an expression where its unit was entered as ``context`` says."""
        found = self.facts.values.of(node)
        for unit, call in context:
            found = frozenset(
                one
                for origin in found
                for one in self.facts.values.substituted(origin, unit, call)
            )
        return self.facts.graph.expand(found)

    def arguments(
        self, call: nodes.Call, parameters: Iterable[str], context: Context = ()
    ) -> Arguments:
        """What ``call`` passes; ``parameters`` names the positional ones in their order."""
        key = id(call), context
        if key not in self._known:
            passed = self._of_call(call, tuple(parameters), 0, context)
            self._known[key] = Arguments(passed)
        return self._known[key]

    def _of_call(
        self, call: nodes.Call, parameters: tuple[str, ...], depth: int, context: Context
    ) -> Passed:
        passed = Passed()
        for index, argument in enumerate(call.args):
            if isinstance(argument, nodes.Starred) or index >= len(parameters):
                passed.complete = False
                break
            passed.set(parameters[index], argument, always=True)
        self._keywords(call, passed, depth, context)
        return passed

    def _keywords(self, call: nodes.Call, passed: Passed, depth: int, context: Context) -> None:
        for keyword in call.keywords:
            if keyword.arg is not None:
                passed.set(keyword.arg, keyword.value, always=True)
            else:
                passed.merge(self.entries(keyword.value, depth + 1, context))

    def entries(self, node: Node, depth: int = 0, context: Context = ()) -> Passed:
        """What a dictionary holds, by its keys."""
        origins = self.origins(node, context)
        found = [self._of_origin(origin, depth, context) for origin in origins]
        if not found:
            return Passed(complete=False)
        return _either(found)

    def _of_origin(self, origin: Origin, depth: int, context: Context) -> Passed:
        passed = Passed()
        if depth > _DEEPEST:
            passed.complete = False
            return passed
        match origin:
            case Expression(node=nodes.Dict() as display):
                for key, value in entries(display):
                    if isinstance(key, nodes.DictUnpack):
                        passed.merge(self.entries(value, depth + 1, context))
                    elif isinstance(key, nodes.Const):
                        passed.set(str(key.value), value, always=True)
                    else:
                        passed.complete = False
            case Expression(node=nodes.BinOp(op="|", left=left, right=right)):
                passed.merge(self.entries(left, depth + 1, context))
                passed.merge(self.entries(right, depth + 1, context))
            case Made(name="builtins.dict", call=call):
                for argument in call.args:
                    passed.merge(self.entries(argument, depth + 1, context))
                self._keywords(call, passed, depth, context)
            case Result(of=Member(of=base, name="copy")):
                passed.merge(self._of_origin(base, depth + 1, context))
            case Param(unit=unit, name=name) if unit.is_function and unit.arguments.kwarg == name:
                passed.merge(self._caught(unit, depth, context))
            case Expression(node=nodes.Const(value=None)):
                pass
            case _:
                passed.complete = False
        self._fill(origin, passed, depth, context)
        return passed

    def _caught(self, unit: Unit, depth: int, context: Context) -> Passed:
        """What the callers of ``unit`` give to its ``**kwargs``, or the one that is known."""
        named = set(unit.parameters)
        entered = [call for at, call in context if at is unit]
        sites = self.facts.graph.sites_of(unit)
        found = []
        for call in entered[:1] or [site.call for site in sites]:
            handed = any(site.handed for site in sites if site.call is call)
            one = Passed(complete=not handed)
            if not handed:
                self._keywords(call, one, depth, context)
                for name in named & set(one.values):
                    del one.values[name]
                    one.always.discard(name)
            found.append(one)
        return _either(found) if found else Passed(complete=False)

    # -- dictionaries that are filled later -------------------------------------------------

    def _fill(self, origin: Origin, passed: Passed, depth: int, context: Context) -> None:
        for key, value in self.filled.get(origin, ()):
            sure = not conditions(value)
            if key is not None:
                passed.set(key, value, always=sure)
                continue
            more = self.entries(value, depth + 1, context)
            if not sure:
                more.always.clear()
            passed.merge(more)

    @property
    def filled(self) -> Mapping[Origin, list[tuple[str | None, Node]]]:
        """``d["key"] = value`` and ``d.update(...)`` by the dictionary that they fill.

        The key is None where the value is itself a dictionary.
        """
        if self._filled is None:
            self._filled = defaultdict(list)
            for origin, key, value in self._stores():
                self._filled[origin].append((key, value))
        return self._filled

    def _stores(self) -> Iterator[tuple[Origin, str | None, Node]]:
        for unit in self.facts.units:
            for store in unit.subscript_stores:
                key, statement = store.slice, store.parent
                if isinstance(statement, nodes.Assign) and isinstance(key, nodes.Const):
                    for origin in self._written_to(store.value):
                        yield origin, str(key.value), statement.value
        for call, _ in self.facts.calls:
            func = call.func
            if not isinstance(func, nodes.Attribute) or func.attrname != "update":
                continue
            for origin in self._written_to(func.expr):
                for argument in call.args[:1]:
                    yield origin, None, argument
                for keyword in call.keywords:
                    if keyword.arg is not None:
                        yield origin, keyword.arg, keyword.value

    def _written_to(self, node: Node) -> Iterator[Origin]:
        """The dictionaries that an expression may be; those that are not known are left out.

        ``**options`` of a function is a dictionary of its own, whoever calls it.
        """
        for origin in self.facts.values.of(node):
            if isinstance(origin, Param):
                unit = origin.unit
                if isinstance(unit.node, FUNCTIONS) and unit.node.args.kwarg == origin.name:
                    yield origin
                    continue
            for one in self.facts.graph.expand(frozenset({origin})):
                if isinstance(one, Expression | Made):
                    yield one

    def item(self, base: Origin, key: int | str) -> list[Node]:
        """The expressions that a dictionary or list may hold under ``key``."""
        found = [v for name, v in self.filled.get(base, ()) if name == str(key)]
        if isinstance(base, Expression) and isinstance(base.node, nodes.DictComp):
            found.append(base.node.value)
        if isinstance(base, Expression) and isinstance(base.node, nodes.List | nodes.ListComp):
            found.extend(self.elements(base))
        return found

    # -- lists ------------------------------------------------------------------------------

    def elements(self, origin: Origin, depth: int = 0) -> list[Node]:
        """The expressions that a list may hold: written in it, appended or extended."""
        if depth > _DEEPEST:
            return []
        found: list[Node] = []
        match origin:
            case Expression(node=nodes.List() | nodes.Tuple() as display):
                for element in elements(display):
                    if isinstance(element, nodes.Starred):
                        found.extend(self.elements_of(element.value, depth + 1))
                    else:
                        found.append(element)
            case Expression(node=nodes.ListComp(elt=elt) | nodes.GeneratorExp(elt=elt)):
                found.append(elt)
            case Expression(node=nodes.BinOp(op="*" | "+", left=left, right=right)):
                for side in (left, right):
                    found.extend(self.elements_of(side, depth + 1))
        for whole, value in self.grown.get(origin, ()):
            found.extend(self.elements_of(value, depth + 1) if whole else [value])
        return found

    def elements_of(self, node: Node, depth: int = 0) -> list[Node]:
        return [e for o in self.facts.origins(node) for e in self.elements(o, depth + 1)]

    @property
    def grown(self) -> Mapping[Origin, list[tuple[bool, Node]]]:
        """``xs.append(x)`` and ``xs.extend(ys)`` by the list; True for a list of elements."""
        if self._grown is None:
            self._grown = defaultdict(list)
            for call, _ in self.facts.calls:
                func = call.func
                if not isinstance(func, nodes.Attribute) or len(call.args) != 1:
                    continue
                if func.attrname in ("append", "extend"):
                    for origin in self.facts.origins(func.expr):
                        if isinstance(origin, Expression):
                            self._grown[origin].append((func.attrname == "extend", call.args[0]))
        return self._grown


def inserted(facts: Facts, call: nodes.Call, text: str) -> Edit:
    """``text`` as one more argument of ``call``, behind the others."""
    file = facts.values.module_of(call).source
    every = in_order(call)
    if every:
        line, column = _end(every[-1])
        return Edit(file.place(line, column, line, column), f", {text}")
    line, column = _end(call)
    return Edit(file.place(line, column - 1, line, column - 1), text)


def removed(facts: Facts, call: nodes.Call, argument: Node) -> Edit | None:
    """``call`` without one argument and its comma; None where a comment would go with it."""
    every = in_order(call)
    index = next(i for i, one in enumerate(every) if one is argument)
    start, end = position(argument), _end(argument)
    if index:
        start = _end(every[index - 1])
    elif len(every) > 1:
        end = position(every[1])
    file = facts.values.module_of(call).source
    if any("#" in line for line in file.lines[start[0] - 1 : end[0] - 1]):
        return None
    return Edit(file.place(*start, *end), "")


def _end(node: Node) -> tuple[int, int]:
    return node.end_lineno or node.lineno or 0, node.end_col_offset or 0


def in_order(call: nodes.Call) -> list[Node]:
    """Positional and keyword arguments as they stand in the text."""
    return sorted([*call.args, *call.keywords], key=position)


def _either(found: list[Passed]) -> Passed:
    if len(found) == 1:
        return found[0]
    merged = Passed()
    for one in found:
        for name, values in one.values.items():
            merged.values[name].extend(values)
        merged.complete &= one.complete
    merged.always = set.intersection(*(one.always for one in found))
    return merged
