"""Layer 5, guards: which ranks run a statement.

A condition is evaluated for a handful of imagined ranks of a job on two nodes with eight
processes each.  That one idea covers the many shapes of a rank guard: ``rank == 0``,
``local_rank in (-1, 0)``, ``rank % gpus == 0``, a helper in another file, a flag, an attribute.
Three answers: True, False, and None for "cannot be told".
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from astroid import nodes

from ddp_lint.model.calls import CallGraph, Site
from ddp_lint.model.flow import Condition, conditions, reaching
from ddp_lint.model.modules import Unit
from ddp_lint.model.origins import (
    Api,
    Expression,
    Item,
    Made,
    Member,
    Origin,
    Param,
    Result,
    Unknown,
)
from ddp_lint.model.torch_api import (
    INIT_GROUP,
    MAIN_DECORATORS,
    MAIN_NAMES,
    RANK_CALLS,
    RANK_ENVIRONMENT,
    RANK_NAMES,
)
from ddp_lint.model.tree import Node, elements

Truth = bool | None


@dataclass(frozen=True)
class Rank:
    """One imagined process of the job."""

    name: str
    global_: int
    local: int
    node: int

    def number(self, kind: str) -> Any:
        numbers = {
            "global": self.global_,
            "local": self.local,
            "node": self.node,
            "world": WORLD,
            "per node": PER_NODE,
            "main": self.global_ == 0,
            "local main": self.local == 0,
            "last": self.global_ == WORLD - 1,
        }
        return numbers.get(kind, UNKNOWN)


WORLD, PER_NODE = 16, 8
FIRST = Rank("first", 0, 0, 0)
NEXT_NODE = Rank("first of the next node", 8, 0, 1)
PEER = Rank("second", 1, 1, 0)
FAR = Rank("second of the next node", 9, 1, 1)
RANKS = (FIRST, PEER, NEXT_NODE, FAR)


class _UnknownValue:
    def __repr__(self) -> str:
        return "unknown"


UNKNOWN = _UnknownValue()

_GPU_NAMES = {"gpu": "local", "gpu_id": "local", "device_id": "local", "local_id": "local"}
_DISTRIBUTED_NAMES = frozenset(
    {"distributed", "is_distributed", "use_ddp", "ddp", "multi_gpu", "is_initialized", "is_dist",
     "is_available", "is_dist_avail_and_initialized", "dist_is_initialized", "use_distributed",
     "multiprocessing_distributed", "is_torch_distributed", "distributed_run"}
)  # fmt: skip
_FRAMEWORK_NAMES = frozenset({"fabric", "accelerator", "process_group"})
_TRUE_CALLS = frozenset(
    {
        "torch.distributed.is_initialized",
        "torch.distributed.is_available",
        "torch.distributed.is_nccl_available",
        "torch.distributed.is_torchelastic_launched",
        "torch.cuda.is_available",
    }
)
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "is": lambda a, b: a is b or a == b,
    "is not": lambda a, b: not (a is b or a == b),
    "in": lambda a, b: a in b,
    "not in": lambda a, b: a not in b,
}
_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
}


@dataclass(frozen=True)
class Audience:
    """Who reaches a statement: a truth for each imagined rank, and the test that decides."""

    reached: tuple[Truth, ...]
    test: Node | None = None
    site: Site | None = None

    def by(self, rank: Rank) -> Truth:
        return self.reached[RANKS.index(rank)]

    @property
    def everyone(self) -> bool:
        """No rank is known to be left out."""
        return all(truth is not False for truth in self.reached)

    @property
    def certain(self) -> bool:
        """Every imagined rank is known to come here."""
        return all(truth is True for truth in self.reached)

    @property
    def only_some(self) -> bool:
        """Some ranks are known to be left out, and another may come here."""
        return False in self.reached and any(t is not False for t in self.reached)

    @property
    def one(self) -> bool:
        """At most one rank of the whole job comes here."""
        return sum(truth is not False for truth in self.reached) <= 1

    @property
    def one_per_node(self) -> bool:
        """The first rank of *each* node comes here, and no other."""
        return (
            self.by(NEXT_NODE) is True
            and self.by(FIRST) is not False
            and self.by(PEER) is False
            and self.by(FAR) is False
        )

    @property
    def nobody(self) -> bool:
        return all(truth is False for truth in self.reached)


class Guards:
    """Rank conditions of one program."""

    def __init__(self, graph: CallGraph) -> None:
        self.graph = graph
        self._words = graph.values.codebase.project.words
        self._truths: dict[tuple[int, int], Any] = {}
        self._busy: set[tuple[int, int]] = set()
        self._units: dict[int, Audience] = {}
        self._stored: dict[str, list[Node]] = {}

    # -- conditions -------------------------------------------------------------------------

    def truth(self, test: Node, rank: Rank) -> Truth:
        value = self.value(test, rank)
        if isinstance(value, _UnknownValue):
            return None
        return bool(value)

    def depends_on_rank(self, test: Node) -> bool:
        """Whether the test is known to hold on one rank and to fail on another."""
        truths = {self.truth(test, rank) for rank in RANKS}
        return True in truths and False in truths

    def value(self, node: Node, rank: Rank) -> Any:
        """The value of an expression on one rank, or ``UNKNOWN``."""
        key = id(node), RANKS.index(rank)
        if key in self._truths:
            return self._truths[key]
        if key in self._busy:
            return UNKNOWN
        self._busy.add(key)
        try:
            found = self._value(node, rank)
        except (TypeError, ValueError, ArithmeticError):
            found = UNKNOWN
        finally:
            self._busy.discard(key)
        self._truths[key] = found
        return found

    def _value(self, node: Node, rank: Rank) -> Any:
        match node:
            case nodes.Const():
                return node.value
            case nodes.UnaryOp(op="not"):
                truth = self.truth(node.operand, rank)
                return UNKNOWN if truth is None else not truth
            case nodes.UnaryOp(op="-"):
                value = self.value(node.operand, rank)
                return UNKNOWN if value is UNKNOWN else -value
            case nodes.BoolOp():
                return self._bool_op(node, rank)
            case nodes.Compare():
                return self._compare(node, rank)
            case nodes.BinOp() if node.op in _ARITHMETIC:
                left, right = self.value(node.left, rank), self.value(node.right, rank)
                if UNKNOWN in (left, right) or isinstance(left, str):
                    return UNKNOWN
                return _ARITHMETIC[node.op](left, right)
            case nodes.Tuple() | nodes.List() | nodes.Set():
                values = [self.value(element, rank) for element in elements(node)]
                return UNKNOWN if UNKNOWN in values else values
            case nodes.IfExp():
                truth = self.truth(node.test, rank)
                if truth is None:
                    body, other = self.value(node.body, rank), self.value(node.orelse, rank)
                    return body if _same(body, other) else UNKNOWN
                return self.value(node.body if truth else node.orelse, rank)
            case nodes.NamedExpr():
                return self.value(node.value, rank)
            case nodes.Name() | nodes.Attribute() | nodes.Call() | nodes.Subscript():
                return self._named(node, rank)
        return UNKNOWN

    def _bool_op(self, node: nodes.BoolOp, rank: Rank) -> Any:
        stop = node.op == "or"
        unknown = False
        value: Any = UNKNOWN
        for part in node.values:
            value = self.value(part, rank)
            if value is UNKNOWN:
                unknown = True
            elif bool(value) is stop:
                # A later part that decides does so only if none before can decide otherwise,
                # and those before it can but decide the same way.
                return value if not unknown else stop
        return UNKNOWN if unknown else value

    def _compare(self, node: nodes.Compare, rank: Rank) -> Any:
        left = self.value(node.left, rank)
        for op, right_node in node.ops:
            if (
                op in ("in", "not in")
                and left in RANK_ENVIRONMENT
                and self._is_environ(right_node)
            ):
                return op == "in"  # a launcher has set it
            right = self.value(right_node, rank)
            if left is UNKNOWN and right is None and op in ("is", "is not"):
                # A job of several processes has the framework's object, where there is one.
                known = _last_name(node.left) in _FRAMEWORK_NAMES
                return op == "is not" if known else UNKNOWN
            if left is UNKNOWN or right is UNKNOWN:
                return UNKNOWN
            if not _COMPARE[op](left, right):
                return False
            left = right
        return True

    def kind_of_decorator(self, name: str) -> str | None:
        """Who runs what such a decorator is put on, as ``Rank.number`` has it; None: it is no
        guard."""
        return "main" if name in self._words.guards else MAIN_DECORATORS.get(name)

    def _named(self, node: Node, rank: Rank) -> Any:
        if _last_name(node) in self._words.guards:
            return rank.number("main")
        if isinstance(node, nodes.Call):
            entered = self.graph.targets_of(node)
            if len(entered) == 1 and entered[0].returns and not _makes_object(entered[0]):
                known = self.answer(entered[0], rank)
                if known is not UNKNOWN:
                    return known
                return self._hint(_last_name(node.func), rank)
        if isinstance(node, nodes.Name):
            known = self._unpacked(node, rank)
            if known is not UNKNOWN:
                return known
        found: Any = UNKNOWN
        for index, origin in enumerate(self.graph.origins(node)):
            value = self._of_origin(origin, rank)
            if value is UNKNOWN:
                return self._hint(_last_name(node), rank)
            if index and not _same(value, found):
                return self._hint(_last_name(node), rank)
            found = value
        if found is None and isinstance(node, nodes.Attribute) and self._stores(node.attrname):
            return self._attribute(node.attrname, rank)
        return found

    def _unpacked(self, name: nodes.Name, rank: Rank) -> Any:
        """``best`` of ``best, last = evaluate()``, by what the function returns on this rank."""
        unit = self.graph.values.unit_of(name)
        reached = reaching(unit, name.name, name) if name.name in unit.bindings else []
        if len(reached) != 1 or len(reached[0].path) != 1:
            return UNKNOWN
        (part,), call = reached[0].path, reached[0].value
        if not isinstance(call, nodes.Call) or not isinstance(part, int):
            return UNKNOWN
        entered = self.graph.targets_of(call)
        return self.answer(entered[0], rank, part) if len(entered) == 1 else UNKNOWN

    def _stores(self, name: str) -> list[Node]:
        """What the program gives to attributes of this name, on whatever object."""
        known = self._stored.get(name)
        if known is None:
            known = self._stored[name] = [
                binding.value
                for module in self.graph.modules
                for _, _, binding in module.attribute_stores.get(name, ())
                if binding.value is not None
                and binding.path == ()
                and not (isinstance(binding.value, nodes.Const) and binding.value.value is None)
            ]
        return known

    def _of_origin(self, origin: Origin, rank: Rank) -> Any:
        match origin:
            case Expression(node=node):
                return self.value(node, rank)
            case Made(name=name) if name in RANK_CALLS:
                return rank.number(RANK_CALLS[name])
            case Made(name=name) if name in _TRUE_CALLS:
                return True
            case Made(name="builtins.int" | "builtins.bool" | "builtins.str", call=call) if (
                call.args
            ):
                value = self.value(call.args[0], rank)
                return int(value) if isinstance(value, int) else UNKNOWN
            case Made(name="os.environ.get" | "os.getenv", call=call) if call.args:
                return self._environment(call.args[0], rank)
            case Item(of=Api(name="os.environ"), how=str(how)):
                kind = RANK_ENVIRONMENT.get(how)
                return rank.number(kind) if kind else UNKNOWN
            case Item(of=Made(name=name), how=int(how)) if RANK_CALLS.get(name) == "dist info":
                return rank.number(("global", "world")[how]) if how in (0, 1) else UNKNOWN
            case Param(unit=unit, name=name):
                if self.graph.is_spawn_index(unit, name):
                    return rank.number("global" if origin in self._job_ranks else "local")
                return self._hint(name, rank)
            case Member(name=name) | Result(of=Member(name=name)):
                return self._attribute(name, rank)
            case Unknown(node=node) if node is not None:
                return self._hint(_last_name(node), rank)
        return UNKNOWN

    def _is_environ(self, node: Node) -> bool:
        return any(o == Api("os.environ") for o in self.graph.origins(node))

    @cached_property
    def _job_ranks(self) -> frozenset[Origin]:
        """What ``init_process_group`` is told as the rank: a spawn index that is handed on as
        it is counts the whole job, which then has one node."""
        found: set[Origin] = set()
        for unit in self.graph.units:
            for call in unit.calls:
                if self.graph.values.names_called(call) & INIT_GROUP:
                    given = [k.value for k in call.keywords if k.arg == "rank"] or call.args[4:5]
                    for node in given:
                        found.update(self.graph.origins(node))
        return frozenset(found)

    def _environment(self, key: Node, rank: Rank) -> Any:
        name = getattr(key, "value", None)
        kind = RANK_ENVIRONMENT.get(name) if isinstance(name, str) else None
        return rank.number(kind) if kind else UNKNOWN

    def _attribute(self, name: str, rank: Rank) -> Any:
        """An attribute of something unknown: what the program stores there, then its name."""
        hinted = self._hint(name, rank)
        stores = self._stores(name)
        values = [self.value(value, rank) for value in stores[:8]]
        if (
            stores
            and len(stores) <= 8
            and UNKNOWN not in values
            and all(_same(value, values[0]) for value in values)
            # A start value, ``args.rank = 0``, says less than the name.
            and (hinted is UNKNOWN or self._differ(stores))
        ):
            return values[0]
        return hinted

    def _differ(self, stores: list[Node]) -> bool:
        return any(len({repr(self.value(s, rank)) for rank in RANKS}) > 1 for s in stores)

    def _hint(self, name: str, rank: Rank) -> Any:
        """What a name says where nothing else tells: enough to stay silent, or to be sure of
        names that mean one thing in this field."""
        if name in self._words.guards:
            return rank.number("main")
        lower = name.lower().lstrip("_")
        for table in (RANK_NAMES, _GPU_NAMES, MAIN_NAMES):
            if lower in table:
                return rank.number(table[lower])
        if lower in _DISTRIBUTED_NAMES:
            return True
        return UNKNOWN

    def answer(self, unit: Unit, rank: Rank, part: int | None = None) -> Any:
        """What a function of the project returns on one rank, or one part of it."""
        possible: list[Any] = []
        for statement in unit.returns:
            value = statement.value if isinstance(statement, nodes.Return) else statement
            if value is None:
                return UNKNOWN
            truth = self.all_hold(conditions(statement), rank)
            if truth is False:
                continue
            if part is not None:
                if not isinstance(value, nodes.Tuple) or not 0 <= part < len(value.elts):
                    return UNKNOWN
                value = elements(value)[part]
            found = self.value(value, rank)
            if truth is True:
                possible.append(found)
                break
            possible.append(found)
        if possible and all(_same(v, possible[0]) for v in possible):
            return possible[0]
        return UNKNOWN

    def all_hold(self, every: tuple[Condition, ...], rank: Rank) -> Truth:
        answer: Truth = True
        for condition in every:
            truth = self.truth(condition.test, rank)
            if truth is None:
                answer = None
            elif truth is not condition.holds:
                return False
        return answer

    # -- who comes here ---------------------------------------------------------------------

    def audience(self, node: Node) -> Audience:
        """Which ranks reach ``node``: its own conditions, and those of every way to its unit."""
        unit = self.graph.values.unit_of(node)
        own = self._own(conditions(node))
        outer = self._unit_audience(unit)
        merged = tuple(_and(a, b) for a, b in zip(own.reached, outer.reached, strict=True))
        decided = own if False in own.reached else outer
        return Audience(merged, decided.test, decided.site)

    def _own(self, every: tuple[Condition, ...]) -> Audience:
        reached: list[Truth] = [self.all_hold(every, rank) for rank in RANKS]
        test = None
        if False in reached:
            rank = RANKS[reached.index(False)]
            test = next(c.test for c in every if self.truth(c.test, rank) is (not c.holds))
        return Audience(tuple(reached), test)

    def _unit_audience(self, unit: Unit) -> Audience:
        known = self._units.get(id(unit))
        if known is not None:
            return known
        everyone: Audience = Audience((True,) * len(RANKS))
        self._units[id(unit)] = everyone  # a recursive call adds nothing
        found = self._from_sites(unit)
        kinds = (self.kind_of_decorator(name) for name in unit.decorator_names)
        kind = next((kind for kind in kinds if kind is not None), None)
        if kind is not None:
            only = tuple(bool(rank.number(kind)) for rank in RANKS)
            found = Audience(
                tuple(_and(a, b) for a, b in zip(found.reached, only, strict=True)),
                unit.decorators[0],
            )
        self._units[id(unit)] = found
        return found

    def _from_sites(self, unit: Unit) -> Audience:
        if unit.outer is not None and not unit.is_method and unit.outer.is_function:
            sites = self.graph.sites_of(unit)
            if not sites:
                return self._unit_audience(unit.outer)
        every = self.graph.sites_of(unit)
        if not every or any(site.spawned for site in every):
            return Audience((True,) * len(RANKS))
        audiences = []
        for site in every:
            found = self.audience(site.call)
            audiences.append(Audience(found.reached, found.test, found.site or site))
        reached = tuple(_or([a.reached[index] for a in audiences]) for index in range(len(RANKS)))
        deciding = next((a for a in audiences if False in a.reached), audiences[0])
        return Audience(reached, deciding.test, deciding.site)


def _and(first: Truth, second: Truth) -> Truth:
    if first is False or second is False:
        return False
    return None if first is None or second is None else True


def _or(truths: list[Truth]) -> Truth:
    if True in truths:
        return True
    return None if None in truths else False


def _same(first: Any, second: Any) -> bool:
    return first is second or (
        first is not UNKNOWN and second is not UNKNOWN and bool(first == second)
    )


def _last_name(node: Node) -> str:
    at = node.func if isinstance(node, nodes.Call) else node
    return str(getattr(at, "attrname", getattr(at, "name", "")) or "")


def _makes_object(unit: Unit) -> bool:
    return unit.name in ("__init__",)
