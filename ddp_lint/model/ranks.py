"""Layer 6, ranks: who comes to a place, where conditions that ask for no rank are taken to hold.

``guards`` answers strictly: under ``if epoch % 5 == 0`` it cannot tell who comes.  For a save or
a collective that is the wrong question.  Whether all ranks come *together* is what matters, and
a condition that is the same on all of them does not decide it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from astroid import nodes

from ddp_lint.model.calls import CallGraph, Site
from ddp_lint.model.demands import Demands, demands_of, left_by
from ddp_lint.model.flow import Condition, bindings_for, conditions, parts_of
from ddp_lint.model.guards import RANKS, Audience, Guards, Rank, Truth
from ddp_lint.model.launching import Start
from ddp_lint.model.modules import Binding, Unit
from ddp_lint.model.origins import Api, Code, Expression, Folder
from ddp_lint.model.phases import is_left_over
from ddp_lint.model.torch_api import DISTRIBUTED_MAKERS
from ddp_lint.model.tree import Node, dotted, walk

#: Words in a name that may hide a rank, where the value itself tells nothing.
_RANKY = re.compile(
    r"rank|main|master|chief|primary|leader|zero|proc|worker|host|node|coord|saver|should|writer"
    r"|owner|root|dist|local|first",
    re.I,
)
_CONVERSIONS = ("int", "float", "bool", "str", "min", "max", "abs", "any", "all", "not_")
_HARMLESS_DECORATORS = (
    "torch.",
    "functools.",
    "contextlib.",
    "typing.",
    "hydra.",
    "click.",
    "abc.",
)
#: Frameworks that call the methods of their users' classes on all ranks.
_HOOK_PACKAGES = ("lightning", "pytorch_lightning", "transformers.", "composer.", "mmengine.",
                  "mmcv.", "trl.")  # fmt: skip
#: Hooks that they call in one process of a node.
_ONCE_HOOKS = frozenset({"prepare_data"})
#: Functions that are given something to call some day, on whatever rank comes by.
_HOOKING = re.compile(r"hook|register|callback|submit|signal|subscribe", re.I)
_DEEPEST = 6


class Ranks:
    """Who comes where in one program."""

    def __init__(self, graph: CallGraph, guards: Guards) -> None:
        self.graph = graph
        self.guards = guards
        self._asks: dict[int, bool] = {}
        self._may: dict[int, bool] = {}
        self._blocks: dict[tuple[tuple[int, bool], ...], Audience] = {}
        self._units: dict[int, Audience] = {}
        self._run: dict[int, bool] = {}
        self._ways: dict[tuple[int, Demands], tuple[Site, ...] | None] = {}
        self.start = Start(graph)

    # -- tests ------------------------------------------------------------------------------

    def asks(self, test: Node) -> bool:
        """Whether the ranks may disagree on ``test``: they do, or it cannot be told."""
        known = self._asks.get(id(test))
        if known is None:
            truths = [self.guards.truth(test, rank) for rank in RANKS]
            if None in truths:
                known = len(set(truths)) > 1 or self._may_ask(test, 0)
            else:
                known = len(set(truths)) > 1
            self._asks[id(test)] = known
        return known

    def _may_ask(self, node: Node, depth: int) -> bool:
        """Remembered for each node: values are passed on in circles and along many ways."""
        known = self._may.get(id(node))
        if known is None:
            self._may[id(node)] = False
            known = self._may[id(node)] = self._looks_like_asking(node, depth)
        return known

    def _looks_like_asking(self, node: Node, depth: int) -> bool:
        if depth > _DEEPEST:
            return False
        match node:
            case nodes.Const():
                return False
            case nodes.BoolOp():
                return any(self._may_ask(value, depth) for value in node.values)
            case nodes.UnaryOp():
                return self._may_ask(node.operand, depth)
            case nodes.Compare():
                sides = [node.left, *(right for _, right in node.ops)]
                return any(self._may_ask(side, depth) for side in sides)
            case nodes.BinOp():
                return self._may_ask(node.left, depth) or self._may_ask(node.right, depth)
            case nodes.IfExp():
                parts = (node.test, node.body, node.orelse)
                return any(self._may_ask(part, depth) for part in parts)
            case nodes.NamedExpr():
                return self._may_ask(node.value, depth)
            case nodes.Subscript():
                key = node.slice
                named = isinstance(key, nodes.Const) and bool(_RANKY.search(str(key.value)))
                return named or self._may_ask(node.value, depth)
            case nodes.Call():
                return self._call_may_ask(node, depth)
            case nodes.Name() | nodes.Attribute():
                return self._name_may_ask(node, depth)
        return False

    def _call_may_ask(self, call: nodes.Call, depth: int) -> bool:
        name = dotted(call.func).rpartition(".")[2]
        if name in _CONVERSIONS:
            return any(self._may_ask(argument, depth) for argument in call.args)
        if _RANKY.search(name):
            return not self._same_everywhere(call)
        for unit in self.graph.targets_of(call):
            for statement in unit.returns:
                value = statement.value if isinstance(statement, nodes.Return) else statement
                if value is not None and self._may_ask(value, depth + 1):
                    return True
                if any(self._may_ask(c.test, depth + 1) for c in conditions(statement)):
                    return True
        return False

    def _name_may_ask(self, node: nodes.Name | nodes.Attribute, depth: int) -> bool:
        if self._same_everywhere(node):
            return False
        name = node.attrname if isinstance(node, nodes.Attribute) else node.name
        if _RANKY.search(name):
            return True
        for binding, unit in self._bindings(node):
            if binding.path == ("param",):
                for site in self.graph.sites_of(unit):
                    given = self.graph.given(site, unit, binding.name)
                    if given is not None and self._may_ask(given, depth + 1):
                        return True
            elif (
                not binding.path
                and binding.value is not None
                and self._may_ask(binding.value, depth + 1)
            ):
                return True
        return False

    def _same_everywhere(self, node: Node) -> bool:
        values = [self.guards.truth(node, rank) for rank in RANKS]
        return None not in values and len(set(values)) == 1

    def _bindings(self, node: nodes.Name | nodes.Attribute) -> Iterator[tuple[Binding, Unit]]:
        if isinstance(node, nodes.Name):
            found, unit = bindings_for(node, self.graph.values.unit_of(node))
            if unit is not None:
                yield from ((binding, unit) for binding in found)
        else:
            for origin in self.graph.origins(node):
                if isinstance(origin, Expression) and origin.node is not node:
                    binding = Binding(node.attrname, node, origin.node)
                    yield binding, self.graph.values.unit_of(origin.node)

    # -- who comes --------------------------------------------------------------------------

    def own(self, node: Node) -> Audience:
        """Who comes to ``node`` by the conditions of its own function alone."""
        return self._by(conditions(node))

    def _by(self, every: tuple[Condition, ...]) -> Audience:
        """The statements of one block share their conditions, and so the answer."""
        key = tuple((id(condition.test), condition.holds) for condition in every)
        known = self._blocks.get(key)
        if known is None:
            known = self._blocks[key] = self._of_conditions(every)
        return known

    def _of_conditions(self, every: tuple[Condition, ...]) -> Audience:
        parts = [
            (condition, test, holds)
            for condition in every
            for test, holds in parts_of(condition.test, condition.holds)
        ]
        reached = tuple(self._hold([p[1:] for p in parts], rank) for rank in RANKS)
        deciding = None
        if False in reached:
            rank = RANKS[reached.index(False)]
            deciding = next(
                c.test for c, test, holds in parts if self.guards.truth(test, rank) is (not holds)
            )
        return Audience(reached, deciding)

    def _hold(self, parts: list[tuple[Node, bool]], rank: Rank) -> Truth:
        answer: Truth = True
        for test, holds in parts:
            truth = self.guards.truth(test, rank)
            if truth is None:
                if self.asks(test):
                    answer = None
            elif truth is not holds and not self._is_setting(test):
                return False
        return answer

    def _is_setting(self, test: Node) -> bool:
        """Whether a test asks for nothing but constants that a user may change."""
        asked = [
            node
            for node in walk(test)
            if isinstance(node, nodes.Name | nodes.Attribute | nodes.Call | nodes.Subscript)
            and not isinstance(node.parent, nodes.Attribute)
        ]
        return bool(asked) and all(
            isinstance(node, nodes.Name | nodes.Attribute)
            and not _RANKY.search(getattr(node, "attrname", getattr(node, "name", "")))
            and self._is_constant(node)
            for node in asked
        )

    def _is_constant(self, node: Node) -> bool:
        origins = self.graph.origins(node)
        return bool(origins) and all(
            isinstance(o, Expression) and isinstance(o.node, nodes.Const) for o in origins
        )

    def audience(self, node: Node) -> Audience:
        """Who comes to ``node``, by its own conditions and by every way to its function.

        A function that nobody calls is taken to be called by all.
        """
        own = self.own(node)
        unit = self.graph.values.unit_of(node)
        sites = self.graph.sites_of(unit)
        asked = demands_of(node, unit)
        leading = [s for s in sites if left_by(self.graph, s, unit, asked) is not None]
        if leading and len(leading) < len(sites):
            return _both(own, self._audience(unit, leading))
        return _both(own, self.audience_of(unit))

    def audience_of(self, unit: Unit) -> Audience:
        """Who runs a function."""
        known = self._units.get(id(unit))
        if known is not None:
            return known
        self._units[id(unit)] = _ALL  # a recursive call adds nothing
        found = self._units[id(unit)] = self._audience(unit, self.graph.sites_of(unit))
        return found

    def _audience(self, unit: Unit, sites: list[Site]) -> Audience:
        found = self._by_callers(unit, sites)
        for only in self._by_decorators(unit):
            found = _both(only, found)
        return found

    def _by_callers(self, unit: Unit, sites: list[Site]) -> Audience:
        if not sites:
            if unit.outer is not None and unit.outer.is_function:
                return self.audience_of(unit.outer)
            return _ALL
        if any(site.spawned for site in sites):
            return _ALL
        found = [(self.audience(site.call), site) for site in sites]
        reached = tuple(_or([a.reached[i] for a, _ in found]) for i in range(len(RANKS)))
        test, site = next(
            ((a.test, a.site or site) for a, site in found if False in a.reached), (None, None)
        )
        return Audience(reached, test, site)

    def _by_decorators(self, unit: Unit) -> Iterator[Audience]:
        for decorator, name in zip(unit.decorators, unit.decorator_names, strict=True):
            func = decorator.func if isinstance(decorator, nodes.Call) else decorator
            origins = self.graph.origins(func)
            # What the project itself writes into a decorator says more than its name.
            seen = [a for o in origins if isinstance(o, Code) for a in self._by_wrapper(o.unit)]
            kind = self.guards.kind_of_decorator(name)
            if seen:
                yield from seen
            elif kind is not None:
                yield Audience(tuple(bool(rank.number(kind)) for rank in RANKS), decorator)
            elif _RANKY.search(name) and any(
                isinstance(o, Api | Folder) and not o.name.startswith(_HARMLESS_DECORATORS)
                for o in origins
            ):
                yield _UNKNOWN

    def _by_wrapper(self, decorator: Unit) -> Iterator[Audience]:
        """Who calls the decorated function in what a decorator of the project makes of it."""
        parameters = set(decorator.parameters)
        calls = [
            call
            for inner in decorator.module.units
            if inner.outer is decorator or (inner.outer and inner.outer.outer is decorator)
            for call in inner.calls
            if isinstance(call.func, nodes.Name)
            and call.func.name in parameters | set(inner.outer.parameters if inner.outer else ())
        ]
        if calls:
            found = [self.own(call) for call in calls]
            reached = tuple(_or([a.reached[i] for a in found]) for i in range(len(RANKS)))
            yield Audience(reached, found[0].test)

    def way_of_all(self, node: Node, carried: Demands = frozenset()) -> tuple[Site, ...] | None:
        """Calls, innermost first, by which all ranks come to ``node``; None if there are none.

        ``carried`` is what is asked of the parameters that the function around ``node`` passes on.
        """
        asked = carried | demands_of(node, self.graph.values.unit_of(node))
        known = (id(node), asked)
        if known in self._ways:
            return self._ways[known]
        self._ways[known] = None  # a circle is no way
        self._ways[known] = found = self._find_way(node, asked)
        return found

    def _find_way(self, node: Node, asked: Demands) -> tuple[Site, ...] | None:
        if not all(truth is True for truth in self.own(node).reached):
            return None
        if self.start.is_without_ranks(node):
            return None
        unit = self.graph.values.unit_of(node)
        while True:
            if any(truth is not True for a in self._by_decorators(unit) for truth in a.reached):
                return None
            sites = self.graph.sites_of(unit)
            if sites or unit.outer is None or not unit.outer.is_function:
                break
            unit = unit.outer  # a value that the function around it hands out
            asked = frozenset()
        if not sites:
            return None if self.start.is_launcher(unit) else ()
        ways = []
        for site in sites:
            if site.spawned:
                return (site,)
            if site.handed and _HOOKING.search(dotted(site.call.func)):
                continue  # who calls it is not known
            left = left_by(self.graph, site, unit, asked)
            if left is not None:
                way = self.way_of_all(site.call, left)
                if way is not None:
                    ways.append((site, *way))
        return min(ways, key=len, default=None)

    # -- what runs --------------------------------------------------------------------------

    def is_run(self, unit: Unit) -> bool:
        """Whether the program certainly has a way to this function, or starts with it.

        Of functions that nobody calls only those count that make processes themselves: for the
        others it is not known who calls them, and under which guard.
        """
        known = self._run.get(id(unit))
        if known is not None:
            return known
        self._run[id(unit)] = False
        self._run[id(unit)] = found = self._is_run(unit)
        return found

    def _is_run(self, unit: Unit) -> bool:
        if not unit.is_function:
            return True
        sites = self.graph.sites_of(unit)
        if any(site.spawned or self.is_run(site.caller) for site in sites):
            return True
        if sites:
            return False
        if unit.outer is not None and unit.outer.is_function:
            return False  # a value that somebody may call
        if unit.owner is not None:
            return self._is_hook(unit)
        if is_left_over(unit):
            return False
        if unit.name == "main" or set(unit.decorator_names) & {"main", "command", "record"}:
            return True
        return any(
            self.graph.values.names_called(call) & DISTRIBUTED_MAKERS for call in unit.calls
        )

    def starts(self, unit: Unit) -> frozenset[int]:
        """The functions, by identity, with which the program may start on its way to ``unit``."""
        found: set[int] = set()
        todo, seen = [unit], set()
        while todo:
            at = todo.pop()
            if id(at) in seen:
                continue
            seen.add(id(at))
            sites = self.graph.sites_of(at)
            todo.extend(site.caller for site in sites)
            if not sites and at.outer is not None and at.outer.is_function:
                todo.append(at.outer)
            elif not sites:
                found.add(id(at))
        return frozenset(found)

    def are_apart(self, first: Unit, second: Unit) -> bool:
        """Whether two functions belong to different starts of a file that has several."""
        mine, others = self.starts(first), self.starts(second)
        every = {id(unit): unit for unit in self.graph.units}
        return not mine & others and all(
            start in every and every[start].is_function and self.is_run(every[start])
            for start in mine | others
        )

    def _is_hook(self, unit: Unit) -> bool:
        """A method that is called by a name or by a framework rather than by the project."""
        assert unit.owner is not None
        if unit.name.startswith("__") or "property" in unit.decorator_names:
            return True
        if unit.name in _ONCE_HOOKS:
            return False
        return any(
            base.startswith(_HOOK_PACKAGES)
            for base in self.graph.values.external_bases(unit.owner)
        )


_ALL = Audience((True,) * len(RANKS))
_UNKNOWN = Audience((None,) * len(RANKS))


def _both(first: Audience, second: Audience) -> Audience:
    reached = tuple(_and(a, b) for a, b in zip(first.reached, second.reached, strict=True))
    decided = first if False in first.reached else second
    return Audience(reached, decided.test, decided.site)


def _and(first: Truth, second: Truth) -> Truth:
    if first is False or second is False:
        return False
    return None if first is None or second is None else True


def _or(truths: list[Truth]) -> Truth:
    if True in truths:
        return True
    return None if None in truths else False
