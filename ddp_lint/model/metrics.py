"""Layer 13, metrics: evaluations of a share of the data, and what becomes of their numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from astroid import nodes

from ddp_lint.finding import Related
from ddp_lint.model.entering import may_be_left_out
from ddp_lint.model.epochs import Epochs
from ddp_lint.model.facts import Facts, Spot, called_name
from ddp_lint.model.loading import SAMPLERS, Loader, Sampler
from ddp_lint.model.modules import Unit
from ddp_lint.model.origins import Instance
from ddp_lint.model.several import is_single
from ddp_lint.model.sharding import CUTTING, Sharding
from ddp_lint.model.torch_api import COLLECTIVES
from ddp_lint.model.tree import Node, is_within, source, walk, walk_scope

_DEEPEST = 5
_MOVING_ONLY = ("barrier", "monitored_barrier", "broadcast", "broadcast_object_list", "scatter",
                "scatter_object_list")  # fmt: skip
#: Collectives that bring together what the ranks have.
REDUCTIONS = frozenset(n for n in COLLECTIVES if n.rpartition(".")[2] not in _MOVING_ONLY)
#: What may be one, where it cannot be seen.
_MAY_REDUCE = re.compile(r"gather|reduce|sync|all_sum|all_mean|merge|aggregate|collect", re.I)
_REPORTING = re.compile(
    r"^(print|info|warning|debug|log|add_scalar|add_scalars|write|log_metrics|print0|rprint"
    r"|set_postfix|set_description|tqdm\.write|logger)$"
)
#: Packages whose functions bring nothing together, whatever they are called.
_LONELY = ("torch.cuda.", "numpy.", "functools.", "collections.", "torch.Tensor.")
_ADDING = frozenset({"update", "add", "add_batch", "accumulate"})
_UNIQUE = frozenset({"numpy.unique", "torch.unique"})


#: Methods that put the samples of a batch where an index says: a repeated one into its own place.
_BY_INDEX = frozenset({"index_copy_", "scatter_", "index_put_"})


@dataclass(frozen=True)
class ShareEvaluation(Spot):
    """A loop that evaluates this rank's share: ``node`` is the loop."""

    unit: Unit
    loader: Loader
    sampler: Sampler | None
    flow: Flow
    epochs: Epochs

    @property
    def dataset_text(self) -> str:
        given = self.sampler.dataset if self.sampler is not None else self.loader.dataset
        return source(given) if given is not None else "the dataset"

    @property
    def sampler_name(self) -> str:
        assert self.sampler is not None
        return self.sampler.name or "DistributedSampler"

    @property
    def value_text(self) -> str:
        """What it counts, as the program calls it."""
        names = self.flow.names
        return min(names, key=lambda name: (name not in self.flow.summed, len(name), name))

    @property
    def reduction(self) -> Node | None:
        """Where the numbers of all ranks come together, for certain."""
        return self.flow.reduction

    @property
    def reduction_text(self) -> str:
        assert isinstance(self.flow.reduction, nodes.Call)
        return called_name(self.flow.reduction)

    @property
    def report(self) -> Node | None:
        """Where one rank's number is shown or decided on; None where it may be everybody's."""
        if self.flow.may_be_reduced or not self.flow.names:
            return None
        return self.flow.report

    @property
    def counts_repeated(self) -> bool:
        """Whether samples that the sampler repeats go into the numbers."""
        return (
            self.sampler is not None
            and self.sampler.drops_last is False
            and self.reduction is not None
            and bool(self.flow.names)
            and not self.flow.is_by_sample
        )

    @property
    def repeats_others(self) -> bool:
        """Whether each epoch repeats other samples: the order hangs on what epoch it is."""
        sampler = self.sampler
        return sampler is not None and sampler.shuffles is True and self.epochs.tells(sampler)

    @property
    def related(self) -> tuple[Related, ...]:
        found = []
        if self.sampler is not None:
            found.append(self.facts.related(self.sampler.node, "this sampler deals the shares"))
        else:
            found.append(self.facts.related(self.loader.node, "this loader has a share"))
        if self.flow.report is not None:
            found.append(self.facts.related(self.flow.report, "here the number is used"))
        return tuple(found)

    @property
    def related_to_sampler(self) -> tuple[Related, ...]:
        assert self.reduction is not None
        return (
            self.facts.related(self.node, "this loop evaluates what it deals"),
            self.facts.related(self.reduction, "here the numbers of all ranks come together"),
        )


@dataclass(frozen=True)
class Meeting:
    """Whether the ranks bring numbers together in a unit, and where.

    ``may``: something that cannot be followed may do so.  ``unique``: repeated samples are
    thrown out.
    """

    at: Node | None = None
    may: bool = False
    unique: bool = False

    def __or__(self, other: Meeting) -> Meeting:
        return Meeting(self.at or other.at, self.may or other.may, self.unique or other.unique)


class Meetings:
    """The meetings of the units of one program."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self._units: dict[int, Meeting] = {}

    def by(self, call: nodes.Call, depth: int = 0) -> Meeting:
        names = self.facts.names(call)
        if names & REDUCTIONS:
            return Meeting(call, may=True)
        targets = self.facts.graph.targets_of(call)
        found = Meeting(unique=bool(names & _UNIQUE) or "gather_for_metrics" in _name(call))
        if not targets and _MAY_REDUCE.search(_name(call)):
            found |= Meeting(may=not names or not all(n.startswith(_LONELY) for n in names))
        if depth <= _DEEPEST:
            for unit in targets:
                found |= self._within(unit, depth + 1)
        return found

    def _within(self, unit: Unit, depth: int) -> Meeting:
        known = self._units.get(id(unit))
        if known is None:
            self._units[id(unit)] = found = Meeting()
            for call in unit.calls:
                found |= self.by(call, depth)
            known = self._units[id(unit)] = found
        return known


class Flow:
    """What becomes of the numbers that a loop collects, in its unit and its callers."""

    def __init__(self, facts: Facts, meetings: Meetings, loop: Node, unit: Unit) -> None:
        self.facts = facts
        self.meetings = meetings
        self.loop = loop
        self.unit = unit
        self.batch = _closed_in(loop)
        self.names: set[str] = set()
        self.summed: set[str] = set()
        self.report: Node | None = None
        self.reduction: Node | None = None
        self.may_be_reduced = False
        self.is_by_sample = False
        self._collect()
        self._in_loop()
        self._follow(unit, set(self.names), 0)

    # -- in the loop ------------------------------------------------------------------------

    def _collect(self) -> None:
        """Numbers, lists and meters of the project that the loop adds to."""
        for node in walk_scope(self.loop):
            match node:
                case nodes.AugAssign(target=nodes.AssignName(name=name), op="+=", value=value):
                    if _touches(value, self.batch):
                        self.names.add(name)
                        self.summed.add(name)
                case nodes.Call(func=nodes.Attribute(attrname=method)) if method in _BY_INDEX:
                    self.is_by_sample = True
                case nodes.Call(func=nodes.Attribute(expr=nodes.Name(name=name), attrname=method)):
                    added = method in ("append", "extend") or self._is_meter(node)
                    given = [*node.args, *(k.value for k in node.keywords)]
                    if added and any(_touches(one, self.batch) for one in given):
                        self.names.add(name)
                case nodes.Assign(targets=[nodes.Subscript(slice=key)]):
                    if not isinstance(key, nodes.Const | nodes.Slice):
                        self.is_by_sample = True

    def _is_meter(self, call: nodes.Call) -> bool:
        """``meter.update(...)`` of a class of the project that is no module or dataset."""
        func = call.func
        adding = ("update", "add", "add_batch", "accumulate")
        if not isinstance(func, nodes.Attribute) or func.attrname not in adding:
            return False
        return any(
            isinstance(o, Instance) and self.facts.roles.role(o) == ""
            for o in self.facts.origins(func.expr)
        )

    def _in_loop(self) -> None:
        for node in walk_scope(self.loop):
            if isinstance(node, nodes.Call):
                self._look_for_reduction(node)

    # -- behind it --------------------------------------------------------------------------

    def _follow(self, unit: Unit, tracked: set[str], depth: int) -> None:
        body = unit.node.body
        statements = body if isinstance(body, list) else [body]
        tracked = _closed(unit, tracked)
        returned = False
        for statement in statements:
            for node in walk_scope(statement):
                match node:
                    case nodes.Call():
                        if depth == 0 or _touches(node, tracked):
                            self._look_for_reduction(node)
                        if self._reports(node, tracked):
                            self._set_report(node)
                    case nodes.Compare() if _touches(node, tracked) and depth <= 2:
                        if not any(op in ("is", "is not", "in", "not in") for op, _ in node.ops):
                            self._set_report(node)
                    case nodes.Return(value=value) if value is not None:
                        returned = returned or _touches(value, tracked)
                    case nodes.Subscript(slice=nodes.Slice(upper=upper)) if upper is not None:
                        if _touches(node, tracked) or depth == 0:
                            self.is_by_sample = self.is_by_sample or not _is_number(upper)
        if (returned or self._keeps(unit, tracked)) and depth < 3:
            for site in self.facts.graph.sites_of(unit):
                if not site.handed:
                    self._in_caller(site.call, site.caller, depth + 1)

    def _in_caller(self, call: nodes.Call, caller: Unit, depth: int) -> None:
        for _, parent in _above(call):
            if isinstance(parent, nodes.Call):
                self._look_for_reduction(parent)
                if self._is_report(parent):
                    self._set_report(parent)
            elif isinstance(parent, nodes.Compare):
                self._set_report(parent)
            elif isinstance(parent, nodes.Return):
                for site in self.facts.graph.sites_of(caller):
                    if depth < 3 and not site.handed:
                        self._in_caller(site.call, site.caller, depth + 1)
        names = {
            name for name, bindings in caller.bindings.items()
            if any(b.value is not None and _is_in(call, b.value) for b in bindings)
        }  # fmt: skip
        if names:
            self._follow(caller, names, depth)

    def _keeps(self, unit: Unit, tracked: set[str]) -> bool:
        """The numbers are kept in the object: whoever asks it may add them up."""
        if unit.owner is None:
            return False
        for name, stores in unit.owner.attributes.items():
            for at, binding in stores:
                if at is unit and binding.value is not None and _touches(binding.value, tracked):
                    self.may_be_reduced = self.may_be_reduced or bool(name)
        return False

    # -- answers ----------------------------------------------------------------------------

    def _set_report(self, node: Node) -> None:
        if self.report is None:
            self.report = node

    def _reports(self, call: nodes.Call, tracked: set[str]) -> bool:
        return self._is_report(call) and _touches(call, tracked)

    def _is_report(self, call: nodes.Call) -> bool:
        if _REPORTING.match(_name(call)):
            return True
        return any(self._prints(unit, 0) for unit in self.facts.graph.targets_of(call))

    def _prints(self, unit: Unit, depth: int) -> bool:
        return depth < 2 and any(
            "builtins.print" in self.facts.names(call)
            or any(self._prints(t, depth + 1) for t in self.facts.graph.targets_of(call))
            for call in unit.calls
        )

    def _look_for_reduction(self, call: nodes.Call) -> None:
        found = self.meetings.by(call)
        self.is_by_sample = self.is_by_sample or found.unique
        self.may_be_reduced = self.may_be_reduced or found.may
        self.reduction = self.reduction or found.at


class Metrics:
    def __init__(self, epochs: Epochs, sharding: Sharding) -> None:
        self.epochs = epochs
        self.sharding = sharding
        self.facts: Facts = epochs.facts
        self.meetings = Meetings(self.facts)

    @property
    def _has_shares(self) -> bool:
        return any(True for _ in self.facts.calls_to(SAMPLERS | CUTTING))

    @cached_property
    def evaluations(self) -> list[ShareEvaluation]:
        """Evaluation loops over loaders whose batches are this rank's own."""
        if not self.epochs.loading.loaders or not self._has_shares:
            return []
        if self.facts.once(is_single):
            return []
        training = {id(loop.node) for loop in self.facts.steps.loops}
        training |= {id(n) for loop in self.facts.steps.loops for n, _ in loop.outer_loops}
        found: list[ShareEvaluation] = []
        for unit in self.facts.units:
            for loop in unit.loops:
                if not isinstance(loop, nodes.For) or id(loop) in training or self._trains(loop):
                    continue
                if any(is_within(one, loop) for one in unit.yields):
                    continue  # it hands the batches on
                found.extend(self._evaluations(loop, unit))
        return found

    def _trains(self, loop: Node) -> bool:
        return any(
            isinstance(node, nodes.Call)
            and (
                self.facts.steps.is_backward(node)
                or any(
                    self.facts.steps.reaches_backward(t) for t in self.facts.graph.targets_of(node)
                )
            )
            for node in walk_scope(loop)
        )

    def _evaluations(self, loop: nodes.For, unit: Unit) -> Iterator[ShareEvaluation]:
        if not _adds_up(loop):
            return
        draws = self.epochs.drawing.draws(loop.iter, loop)
        shared = [d for d in draws if not d.source.owned and self._deals_shares(d.source.loader)]
        if not shared or not all(self.facts.ranks.audience(loop).reached):
            return
        flow = Flow(self.facts, self.meetings, loop, unit)
        for draw in shared:
            loader = draw.source.loader
            samplers: list[Sampler | None] = [*loader.samplers] or [None]
            for sampler in samplers:
                yield ShareEvaluation(self.facts, loop, unit, loader, sampler, flow, self.epochs)

    def _deals_shares(self, loader: Loader) -> bool:
        if loader.samplers:
            return not any(
                sampler.deals_all or may_be_left_out(self.facts, sampler.node, sampler.context)
                for sampler in loader.samplers
            )
        return loader.has_no_sampler and self.sharding.is_certain_share(loader)

    @cached_property
    def looks_whether_it_divides(self) -> bool:
        """``len(dataset) % world_size`` is asked somewhere: the padding is known about."""
        return any(
            isinstance(node, nodes.BinOp)
            and node.op == "%"
            and any(isinstance(p, nodes.Call) and getattr(p.func, "name", "") == "len"
                    for p in walk(node.left))
            and self.sharding.mentions_rank(node.right)
            for unit in self.facts.units
            for node in _tests(unit)
        )  # fmt: skip

    @property
    def padded(self) -> Iterator[ShareEvaluation]:
        seen: set[int] = set()
        for one in self.evaluations:
            if one.counts_repeated and not self.looks_whether_it_divides:
                assert one.sampler is not None
                if id(one.sampler.node) not in seen:
                    seen.add(id(one.sampler.node))
                    yield one

    @property
    def of_one_rank(self) -> Iterator[ShareEvaluation]:
        seen: set[int] = set()
        for one in self.evaluations:
            if one.report is not None and id(one.node) not in seen:
                seen.add(id(one.node))
                yield one


def _tests(unit: Unit) -> Iterator[Node]:
    body = unit.node.body
    for statement in body if isinstance(body, list) else [body]:
        for node in walk_scope(statement):
            if isinstance(node, nodes.If | nodes.Assert | nodes.IfExp | nodes.While):
                yield from walk(node.test)


def _adds_up(loop: Node) -> bool:
    """Whether a loop collects anything, by its text."""
    return any(
        isinstance(node, nodes.AugAssign)
        or (isinstance(node, nodes.Call) and _name(node) in (*_ADDING, "append", "extend"))
        for node in walk_scope(loop)
    )


def _closed_in(loop: Node) -> set[str]:
    """Names of the batch, and of what the loop makes from it."""
    assert isinstance(loop, nodes.For)
    found = {n.name for n in walk(loop.target) if isinstance(n, nodes.AssignName)}
    assigned = [
        (node.targets, node.value)
        for one in loop.body
        for node in walk(one)
        if isinstance(node, nodes.Assign)
    ] + [
        ([node.target], node.iter)
        for one in loop.body
        for node in walk(one)
        if isinstance(node, nodes.For | nodes.Comprehension)
    ]
    while True:
        more = {
            n.name
            for targets, value in assigned
            if _touches(value, found)
            for target in targets
            for n in walk(target)
            if isinstance(n, nodes.AssignName)
        }
        if more <= found:
            return found
        found |= more


def _closed(unit: Unit, tracked: set[str]) -> set[str]:
    """The names, and those that are made from them."""
    found = set(tracked)
    while True:
        more = {
            name
            for name, bindings in unit.bindings.items()
            if name not in found
            and any(
                b.value is not None and b.path != ("import",) and _touches(b.value, found)
                for b in bindings
                if not isinstance(b.value, nodes.FunctionDef | nodes.ClassDef)
            )
        }
        if not more:
            return found
        found |= more


def _touches(node: Node, names: set[str]) -> bool:
    return any(isinstance(part, nodes.Name) and part.name in names for part in walk(node))


def _above(node: Node) -> Iterator[tuple[Node, Node]]:
    """The expressions and the statement around a call."""
    child, parent = node, node.parent
    while parent is not None and not isinstance(
        parent, nodes.FunctionDef | nodes.Module | nodes.If
    ):
        yield child, parent
        if parent.is_statement:
            return
        child, parent = parent, parent.parent


def _is_in(node: Node, outer: Node) -> bool:
    at: Node | None = node
    while at is not None and at is not outer:
        at = at.parent
    return at is outer


def _name(call: nodes.Call) -> str:
    return str(getattr(call.func, "attrname", getattr(call.func, "name", "")))


def _is_number(node: Node) -> bool:
    return isinstance(node, nodes.Const | nodes.UnaryOp)
