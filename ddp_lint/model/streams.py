"""Layer 13, streams: batches that are copied on a side stream, and what keeps them apart.

A prefetcher is a generator, or a class with a method that hands batches over.  The ways of one
hand-over are laid out as a list of happenings, its own methods entered: copies, waits, the
places where the batch leaves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from astroid import nodes

from ddp_lint.finding import Edit, Fix, Related
from ddp_lint.model.current_stream import ENTERING, STREAMS, entered, is_own_wait, sides
from ddp_lint.model.facts import Facts, Spot
from ddp_lint.model.flow import conditions, exclusive
from ddp_lint.model.modules import Class, Unit
from ddp_lint.model.origins import Made
from ddp_lint.model.reruns import Reruns
from ddp_lint.model.torch_api import SYNCHRONIZE
from ddp_lint.model.tree import Loop, Node, dotted, is_within, position, source, statement, walk

_READS = frozenset({"item", "tolist", "cpu", "numpy"})
_HANDING_OVER = ("__next__", "next", "__iter__")
_DEEPEST = 4


@dataclass(frozen=True)
class Region:
    """``with torch.cuda.stream(side):`` around copies to the device."""

    node: nodes.With
    stream: Node
    unit: Unit

    @property
    def names(self) -> set[str]:
        """Names and attributes that it fills."""
        return {
            dotted(target)
            for part in self.node.body
            for target in walk(part)
            if isinstance(target, nodes.AssignName | nodes.AssignAttr)
        }


@dataclass(frozen=True)
class Happened:
    """A node that a hand-over runs; ``top`` is the node of its own unit by which it does."""

    node: Node
    unit: Unit
    top: Node


@dataclass
class Prefetcher:
    """A generator, or a class, that hands over batches which a side stream copies."""

    facts: Facts
    unit: Unit
    cls: Class | None
    happenings: list[Happened]
    regions: list[Region]
    others: list[Node] = field(default_factory=list)

    # -- what keeps them apart --------------------------------------------------------------

    @property
    def too_early(self) -> Iterator[tuple[Node, Node, Region]]:
        """Hand-overs of a batch whose copy nobody has waited for, and what they hand over."""
        order: dict[int, int] = {}
        for index, one in enumerate(self.happenings):
            order.setdefault(id(one.node), index)
        waits = [order[id(one.node)] for one in self.happenings if self._is_wait(one.node)]
        for one in self.happenings:
            given = self._given(one.node, one.unit)
            if given is None:
                continue
            for region in self.regions:
                if not self._hands_over(given, region) or self._is_without_stream(
                    one.node, region
                ):
                    continue
                if self._is_on_side(one.node, region):
                    continue
                copied, here = order[id(region.node)], order[id(one.node)]
                if copied < here and self._is_read_after(given, region, order):
                    waited = any(copied < wait < here for wait in waits)
                else:
                    waited = bool(waits)
                inside = self.inside(region)
                steps_between = any(copied < order[id(node)] < here for node in inside)
                if not waited and not (steps_between and self.facts.once(_may_wait_each_step)):
                    yield one.node, given, region
                break

    def inside(self, region: Region) -> list[Node]:
        """Each ``yield`` in the ``with`` itself.

        The generator sleeps in it, so the side stream is the current one of whoever goes on
        with the batch: its kernels are queued behind the copy.
        """
        return [one.node for one in self.happenings if self._is_on_side(one.node, region)]

    def _is_on_side(self, node: Node, region: Region) -> bool:
        current = entered(self.facts, node) if isinstance(node, nodes.Yield) else None
        return current is not None and not sides(self.facts, current).isdisjoint(
            sides(self.facts, region.stream)
        )

    @property
    def own_waits(self) -> tuple[Node, ...]:
        """Waits of a stream for itself."""
        return tuple(
            one.node
            for one in self.happenings
            if isinstance(one.node, nodes.Call) and is_own_wait(self.facts, one.node)
        )

    def _given(self, node: Node, unit: Unit) -> Node | None:
        """What is handed over here, None where nothing is."""
        if unit is not self.unit:
            return None
        if isinstance(node, nodes.Yield):
            return node.value
        if isinstance(node, nodes.Return) and not self.unit.is_generator:
            return None if isinstance(node.value, nodes.Const) else node.value
        return None

    def _hands_over(self, given: Node, region: Region) -> bool:
        return bool(_named(given) & self._tracked(region))

    def _tracked(self, region: Region) -> set[str]:
        """What the region fills, and names in the hand-over that are made from it."""
        found = region.names
        if region.unit is not self.unit:
            found = {name for name in found if "." in name}
        while True:
            more = {
                name
                for name, bindings in self.unit.bindings.items()
                if name not in found
                and any(
                    b.value is not None and b.path[:1] != ("param",) and _named(b.value) & found
                    for b in bindings
                )
            }
            if not more:
                return found
            found |= more

    def _is_read_after(self, given: Node, region: Region, order: dict[int, int]) -> bool:
        """Whether the value was taken after this copy, and not after the one before."""
        copied = order[id(region.node)]
        top, tracked = self.happenings[copied].top, self._tracked(region)
        for name in _named(given):
            if "." in name:
                return True
            for binding in self.unit.bindings.get(name, ()):
                if is_within(binding.node, region.node):
                    return True
                if exclusive(binding.node, top) or position(binding.node) > position(given):
                    continue
                at = order.get(id(statement(binding.node)), order.get(id(binding.node)))
                taken = binding.value is not None and bool(_named(binding.value) & tracked)
                if at is not None and at > copied and taken:
                    return True
        return False

    def _is_without_stream(self, node: Node, region: Region) -> bool:
        """On the way where there is no stream, as on a machine without a GPU."""
        if region.unit is self.unit and exclusive(node, region.node):
            return True
        stream = dotted(region.stream)
        return any(
            c.holds and c.exit is None and c.test.as_string() == f"{stream} is None"
            for c in conditions(node)
        )

    def _is_wait(self, node: Node) -> bool:
        if not isinstance(node, nodes.Call):
            return False
        if "torch.cuda.synchronize" in self.facts.names(node):
            return True
        func = node.func
        if not isinstance(func, nodes.Attribute):
            return False
        if func.attrname in ("wait_stream", "wait_event"):
            return not sides(self.facts, func.expr)
        return func.attrname == "synchronize"

    @property
    def keeps_memory(self) -> bool:
        """Whether the memory of a batch is safe until the step has read it."""
        every = [*(one.node for one in self.happenings), *self.others]
        for node in every:
            if not isinstance(node, nodes.Call) or not isinstance(node.func, nodes.Attribute):
                continue
            name = node.func.attrname
            if name == "record_stream":
                return True
            if (
                name in ("wait_stream", "wait_event")
                and sides(self.facts, node.func.expr)
                and not is_own_wait(self.facts, node)
            ):
                return True
        if any(self.inside(region) for region in self.regions):
            return True
        return any(
            isinstance(part, nodes.Call) and getattr(part.func, "attrname", "") == "copy_"
            for region in self.regions
            for one in region.node.body
            for part in walk(one)
        )


def _may_wait_each_step(facts: Facts) -> bool:
    """Whether the host may wait for the device in each step, and so for a copy before it: some
    training loop does, or the program has none."""
    return not facts.steps.loops or any(
        (facts.names(happening.call) & SYNCHRONIZE)
        or getattr(happening.call.func, "attrname", "") in _READS
        for loop in facts.steps.loops
        for happening in loop.calls
        if facts.how_often(loop, happening) == "every step"
    )


@dataclass(frozen=True)
class EarlyHandOver(Spot):
    """A batch leaves before its copy is done.

    ``inside`` are the other hand-overs, within the ``with``, and ``own_waits`` waits of a stream
    for itself.
    """

    given: Node
    region: Region
    inside: tuple[Node, ...]
    own_waits: tuple[Node, ...]

    @property
    def given_text(self) -> str:
        return source(self.given)

    @property
    def stream_text(self) -> str:
        return source(self.region.stream)

    @property
    def related(self) -> tuple[Related, ...]:
        found = [self.facts.related(self.region.node, "it is copied here, on another stream")]
        found.extend(_about_own_waits(self.facts, self.region, self.own_waits))
        for node in self.inside:
            text = f"this leaves `{self.stream_text}` the current stream of the step"
            found.append(self.facts.related(node, text))
        return tuple(found)

    @property
    def fix(self) -> Fix | None:
        """Let the consumer's stream wait first."""
        unit = self.facts.values.unit_of(self.node)
        local = self.region.unit is unit
        if not (local or dotted(self.region.stream).startswith("self.")) or not _has_torch(unit):
            return None
        text = f"torch.cuda.current_stream().wait_stream({self.stream_text})"
        edit = self.facts.insert_before(self.node, text)
        return Fix("Wait for the copy before the batch is handed over", (edit,), safe=False)


@dataclass(frozen=True)
class UnkeptMemory(Spot):
    """The memory of a batch may be given to the next copy while kernels still read it."""

    region: Region
    own_waits: tuple[Node, ...]

    @property
    def stream_text(self) -> str:
        return source(self.region.stream)

    @property
    def related(self) -> tuple[Related, ...]:
        return _about_own_waits(self.facts, self.region, self.own_waits)

    @property
    def fix(self) -> Fix | None:
        """Let the copy wait for the consumer."""
        if not _has_torch(self.region.unit):
            return None
        text = f"{self.stream_text}.wait_stream(torch.cuda.current_stream())"
        edit = self.facts.insert_before(self.node, text)
        return Fix("Copy when the last batch has been read", (edit,), safe=False)


@dataclass(frozen=True)
class LostTensor(Spot):
    """``x = x.record_stream(s)`` assigns None."""

    @property
    def name(self) -> str:
        at = statement(self.node)
        return source(at.targets[0]) if isinstance(at, nodes.Assign) else ""

    @property
    def fix(self) -> Fix | None:
        at = statement(self.node)
        file = self.facts.values.module_of(at).source
        edit = Edit(file.place(*position(at), *position(self.node)), "")
        return Fix("Call it for its effect only", (edit,), safe=False)


class SideStreams:
    """Prefetchers of one program."""

    def __init__(self, facts: Facts, reruns: Reruns) -> None:
        self.facts = facts
        self.reruns = reruns

    def early(self) -> Iterator[EarlyHandOver]:
        for prefetcher in self._prefetchers:
            for node, given, region in prefetcher.too_early:
                inside, own_waits = tuple(prefetcher.inside(region)), prefetcher.own_waits
                yield EarlyHandOver(self.facts, statement(node), given, region, inside, own_waits)

    def unkept(self) -> Iterator[UnkeptMemory]:
        for prefetcher in self._prefetchers:
            if prefetcher.keeps_memory or any(True for _ in prefetcher.too_early):
                continue
            for region in prefetcher.regions:
                yield UnkeptMemory(self.facts, region.node, region, prefetcher.own_waits)

    def lost(self) -> Iterator[LostTensor]:
        for unit in self.facts.units:
            for call in unit.calls:
                at = call.parent
                if getattr(call.func, "attrname", "") == "record_stream" and isinstance(
                    at, nodes.Assign
                ):
                    yield LostTensor(self.facts, call)

    # -- finding them -----------------------------------------------------------------------

    @property
    def _prefetchers(self) -> Iterator[Prefetcher]:
        regions = self._regions
        if not regions:
            return
        for unit in self.facts.units:
            if unit.owner is None and unit.is_generator:
                found = self._prefetcher(unit, None, regions)
                if found is not None:
                    yield found
        for module in self.facts.modules:
            for cls in module.classes:
                for name in _HANDING_OVER:
                    method = self.reruns.method(cls, name)
                    if method is None or (name == "__iter__" and not method.is_generator):
                        continue
                    found = self._prefetcher(method, cls, regions)
                    if found is not None:
                        yield found
                    break

    @property
    def _regions(self) -> dict[int, Region]:
        found = {}
        for call, unit in self.facts.calls_to(ENTERING):
            block = call.parent
            if not isinstance(block, nodes.With) or not call.args:
                continue
            side = any(
                isinstance(o, Made) and o.name in STREAMS for o in self.facts.origins(call.args[0])
            )
            if side and any(self._moves(part, 0) for part in block.body):
                found[id(block)] = Region(block, call.args[0], unit)
        return found

    def _moves(self, node: Node, depth: int) -> bool:
        """Whether something is copied to the device within."""
        for part in walk(node):
            if not isinstance(part, nodes.Call):
                continue
            name = getattr(part.func, "attrname", "")
            if name in ("cuda", "copy_") or (name == "to" and part.args):
                return True
            if depth < _DEEPEST and any(
                self._moves(one, depth + 1)
                for unit in self.facts.graph.targets_of(part)
                for one in _body(unit)
            ):
                return True
        return False

    def _prefetcher(
        self, unit: Unit, cls: Class | None, regions: dict[int, Region]
    ) -> Prefetcher | None:
        happenings: list[Happened] = []
        self._lay_out(unit, cls, happenings, ())
        own = [regions[id(one.node)] for one in happenings if id(one.node) in regions]
        if not own:
            return None
        others: list[Node] = []
        for one in self._reached(happenings, unit, cls):
            others.extend(walk(one.node))
        return Prefetcher(self.facts, unit, cls, happenings, own, others)

    def _reached(self, happenings: list[Happened], unit: Unit, cls: Class | None) -> list[Unit]:
        """The units that a hand-over runs, and the other methods of its class."""
        found = {id(unit): unit} | {id(one.unit): one.unit for one in happenings}
        for at in self.facts.values.mro(cls) if cls is not None else []:
            for name, method in at.methods.items():
                if cls is not None and self.reruns.method(cls, name) is method:
                    found[id(method)] = method
        return list(found.values())

    def _lay_out(
        self,
        unit: Unit,
        cls: Class | None,
        found: list[Happened],
        inside: tuple[Unit, ...],
        top: Node | None = None,
    ) -> None:
        for one in _body(unit):
            for node in self._sequence(one):
                if isinstance(node, nodes.Call) and len(inside) < _DEEPEST:
                    for target in self.entered(node, unit, cls):
                        if target is not unit and target not in inside and target.is_function:
                            self._lay_out(target, cls, found, (*inside, unit), top or node)
                found.append(Happened(node, unit, top or node))

    def _sequence(self, one: Node) -> Iterator[Node]:
        """What runs, in order; a ``with`` comes before what is in it."""
        pending: list[Node] = []
        for node in self.facts.steps.sequence(one):
            pending.append(node)
        regions = [n for n in pending if isinstance(n, nodes.With)]
        opened: set[int] = set()
        for node in pending:
            for region in regions:
                if id(region) not in opened and any(is_within(node, part) for part in region.body):
                    opened.add(id(region))
                    yield region
            if not isinstance(node, nodes.With):
                yield node

    def entered(self, call: nodes.Call, unit: Unit, cls: Class | None) -> list[Unit]:
        func = call.func
        if (
            cls is not None
            and isinstance(func, nodes.Attribute)
            and isinstance(func.expr, nodes.Name)
            and func.expr.name == unit.self_name
        ):
            method = self.reruns.method(cls, func.attrname)
            return [method] if method is not None else []
        return self.facts.graph.targets_of(call)


def _body(unit: Unit) -> list[Node]:
    body = unit.node.body
    return body if isinstance(body, list) else [body]


def _named(node: Node) -> set[str]:
    """Names and chains of attributes in an expression."""
    return {
        dotted(part)
        for part in walk(node)
        if isinstance(part, nodes.Name | nodes.Attribute) and dotted(part)
    }


def _about_own_waits(facts: Facts, region: Region, waits: tuple[Node, ...]) -> tuple[Related, ...]:
    text = f"within the `with`, `{source(region.stream)}` waits for itself"
    return tuple(facts.related(node, text) for node in waits if is_within(node, region.node))


def _has_torch(unit: Unit) -> bool:
    return "torch" in unit.module.body.bindings


# -- a stream for each epoch --------------------------------------------------------------------


@dataclass(frozen=True)
class RepeatedStream(Spot):
    """A stream that is made again in each epoch: ``loop`` is the loop over them."""

    loop: Node

    @property
    def related(self) -> tuple[Related, ...]:
        return (self.facts.related(self.loop, "each iteration of this loop makes another one"),)


def repeated_streams(facts: Facts, reruns: Reruns) -> Iterator[RepeatedStream]:
    for call, unit in facts.calls_to(STREAMS):
        if any("None" in c.test.as_string() for c in conditions(call)):
            continue  # made when it is first needed
        for loop, _ in reruns.loops_outside(call, unit):
            own = is_within(call, loop)
            if id(loop) in reruns.training or (not own and _encloses_a_loop(loop)):
                yield RepeatedStream(facts, call, loop)
                break


def _encloses_a_loop(loop: Loop) -> bool:
    return any(
        isinstance(part, nodes.For | nodes.While) for one in loop.body for part in walk(one)
    )
