"""Layer 11, devices: which GPU a process takes, and when it says so."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from astroid import nodes

from ddp_lint.finding import Edit, Fix, Level, Related
from ddp_lint.model.facts import Facts, Spot
from ddp_lint.model.localizing import localized
from ddp_lint.model.origins import (
    Api,
    Expression,
    Instance,
    Item,
    Made,
    Member,
    Origin,
    Result,
    is_none,
)
from ddp_lint.model.processes import has_one_node, is_told_its_gpu
from ddp_lint.model.several import is_alone
from ddp_lint.model.story import Event, Story
from ddp_lint.model.testing import is_started_by_a_runner
from ddp_lint.model.torch_api import BARRIERS, COLLECTIVES, INIT_GROUP, ROLES, SET_DEVICE
from ddp_lint.model.tree import Node, dotted, elements, follows, position, source, walk

_GLOBAL_CALLS = frozenset(
    {"torch.distributed.get_rank", "torch.distributed.distributed_c10d.get_rank"}
)
_GLOBAL_ENVIRONMENT = frozenset({"RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK"})
_SPEAKING_OF_RANKS = re.compile(
    rb"get_rank\s*\(|[\"'](?:RANK|SLURM_PROCID|OMPI_COMM_WORLD_RANK)[\"']"
)
_GETTERS = frozenset({"os.environ.get", "os.getenv"})
_DEEPEST = 6


# -- the rank of the job as a device ----------------------------------------------------------


@dataclass(frozen=True)
class RankAsDevice(Spot):
    """A place that takes the rank in the whole job for the number of a GPU."""

    rank: Node
    source_call: Node
    others: tuple[Node, ...]

    @property
    def rank_text(self) -> str:
        return source(self.rank)

    @property
    def places(self) -> tuple[Related, ...]:
        found = []
        if self.source_call is not self.rank:
            found.append(self.facts.related(self.source_call, "the rank comes from here"))
        found.extend(self.facts.related(node, "it is used again here") for node in self.others[:3])
        return tuple(found)

    @property
    def localizing(self) -> Fix | None:
        """The local rank in its place."""
        edits = localized(self.facts, self.source_call, [self.rank, *self.others])
        return Fix("Use the local rank", edits, safe=True) if edits else None


def ranks_as_devices(facts: Facts) -> Iterator[RankAsDevice]:
    """The first use of each global rank as a device."""
    if not any(module.source.mentions(_SPEAKING_OF_RANKS) for module in facts.modules):
        return
    if facts.once(has_one_node):
        return
    found: dict[int, list[tuple[nodes.Call, Node, Node]]] = {}
    for call, unit in facts.calls:
        for sink in _sinks(facts, call):
            origin = _global_rank(facts, sink, 0)
            if origin is not None and not is_started_by_a_runner(facts, unit):
                found.setdefault(id(origin), []).append((call, sink, origin))
    for uses in found.values():
        ordered = sorted(uses, key=lambda use: _order(facts, use[0]))
        call, sink, origin = ordered[0]
        others = tuple(other for _, other, _ in ordered[1:])
        yield RankAsDevice(facts, call, sink, origin, others)


def _order(facts: Facts, node: Node) -> tuple[int, tuple[int, int]]:
    """When a place comes in the program: when its function is first run, then as written."""
    unit = facts.values.unit_of(node)
    for event in facts.once(Story).events():
        if any(frame.unit is unit for frame in event.frame.outward):
            return event.number, position(node)
    return 0, position(node)


def _sinks(facts: Facts, call: nodes.Call) -> Iterator[Node]:
    """The expressions that a call takes for the index of a device."""
    func = call.func
    names = facts.names(call)
    named = {k.arg: k.value for k in call.keywords}
    if names & SET_DEVICE:
        yield from _indices(call.args[0]) if call.args else ()
    elif "torch.device" in names:
        if len(call.args) > 1:
            yield call.args[1]
        elif call.args:
            yield from _indices(call.args[0], bare=False)
    elif any(ROLES.get(name) == "ddp" for name in names):
        ids = named.get("device_ids") or (call.args[1] if len(call.args) > 1 else None)
        if isinstance(ids, nodes.List | nodes.Tuple):
            yield from elements(ids)
        elif ids is not None:
            yield from _listed(facts, ids)
    elif (
        isinstance(func, nodes.Attribute)
        and func.attrname in ("to", "cuda")
        and call.args
        and (func.attrname == "cuda" or not isinstance(call.args[0], nodes.Call))
    ):
        yield from _indices(call.args[0])
    if "device" in named and not isinstance(named["device"], nodes.Call):
        yield from _indices(named["device"])


def _listed(facts: Facts, node: Node) -> Iterator[Node]:
    for value in _values_of(facts, node):
        if isinstance(value, nodes.List | nodes.Tuple):
            yield from elements(value)


def _values_of(facts: Facts, node: Node, depth: int = 0) -> Iterator[Node]:
    """The expressions that a value may come from, also what is stored in an attribute later."""
    if depth > _DEEPEST:
        return
    for origin in facts.origins(node):
        if isinstance(origin, Expression):
            yield origin.node
    if isinstance(node, nodes.Attribute):
        for module in facts.modules:
            for _, _, binding in module.attribute_stores.get(node.attrname, ()):
                if binding.value is not None and not binding.path:
                    yield from _values_of(facts, binding.value, depth + 1)


def _indices(node: Node, bare: bool = True) -> Iterator[Node]:
    """The index within ``f"cuda:{rank}"`` and the like; the value itself where it is one."""
    if isinstance(node, nodes.JoinedStr):
        match node.values:
            case [nodes.Const(value="cuda:"), nodes.FormattedValue(value=index)]:
                yield index
    elif isinstance(node, nodes.BinOp) and node.op in ("+", "%"):
        left = getattr(node.left, "value", None)
        if isinstance(left, str) and left.startswith("cuda:"):
            right = node.right
            yield right.args[0] if isinstance(right, nodes.Call) and right.args else right
    elif bare:
        yield node


def _global_rank(facts: Facts, node: Node, depth: int) -> Node | None:
    """Where a value that certainly is the rank in the whole job comes from."""
    if depth > _DEEPEST or isinstance(node, nodes.BinOp):
        return None
    origins = facts.origins(node)
    found = _all_known(_of_origin(facts, origin, depth) for origin in origins)
    if found is None and origins and isinstance(node, nodes.Attribute):
        return _stored(facts, node, depth)
    return found


def _all_known(found: Iterable[Node | None]) -> Node | None:
    """The first of them, where there is one and none is unknown; none is asked for after that."""
    first: Node | None = None
    for one in found:
        if one is None:
            return None
        first = one if first is None else first
    return first


def _of_origin(facts: Facts, origin: Origin, depth: int) -> Node | None:
    match origin:
        case Made(name=name, call=call) if name in _GLOBAL_CALLS:
            return None if _asks_of_a_group(call) else call
        case Made(name="builtins.int", call=call) if call.args:
            return _global_rank(facts, call.args[0], depth + 1)
        case Made(name=name, call=call) if name in _GETTERS and call.args:
            key = call.args[0]
            return key if getattr(key, "value", None) in _GLOBAL_ENVIRONMENT else None
        case Item(of=Api(name="os.environ"), how=str(how)) if how in _GLOBAL_ENVIRONMENT:
            return _key_in_program(facts, how)
    return None


def _asks_of_a_group(call: nodes.Call) -> bool:
    """``get_rank(group)``: the groups of a job may be its nodes."""
    given = [*call.args, *(k.value for k in call.keywords)]
    return any(not isinstance(one, nodes.Const) or one.value is not None for one in given)


def _key_in_program(facts: Facts, name: str) -> Node | None:
    """The text ``"RANK"`` in ``os.environ["RANK"]``: the first in the program stands for all."""
    for module in facts.modules:
        if name.encode() in module.source.raw:
            for node in walk(module.tree):
                if (
                    isinstance(node, nodes.Subscript)
                    and getattr(node.slice, "value", None) == name
                    and dotted(node.value).endswith("environ")
                ):
                    return node.slice
    return None


def _stored(facts: Facts, node: nodes.Attribute, depth: int) -> Node | None:
    """``args.rank``: what the program stores there, where all of it is the global rank."""
    if any(
        isinstance(o, Instance | Made | Result | Member) for o in facts.origins(node)
    ) and not all(_is_open(o) for o in facts.origins(node)):
        return None
    stores = [
        binding
        for module in facts.modules
        for _, _, binding in module.attribute_stores.get(node.attrname, ())
        if not (isinstance(binding.value, nodes.Const) and binding.value.value is None)
    ]
    return _all_known(
        _global_rank(facts, b.value, depth + 1) if b.value is not None and not b.path else None
        for b in stores
    )


def _is_open(origin: Origin) -> bool:
    return isinstance(origin, Member) or is_none(origin)


# -- choosing the device ----------------------------------------------------------------------


@dataclass(frozen=True)
class UnplacedGroup(Spot):
    """An NCCL group that is made before its process has chosen a GPU.

    ``use`` is what runs before the choice, ``choice`` where the device is chosen too late; both
    are None where that never happens.
    """

    use: nodes.Call | None
    choice: nodes.Call | None

    @property
    def level(self) -> Level:
        is_harmless = self.use is None or (self.choice is None and self.is_guessed)
        return "note" if is_harmless else "warning"

    @property
    def is_guessed(self) -> bool:
        """Whether ``use`` is a barrier: NCCL takes the GPU that the group used first, else the
        one whose number is the global rank modulo the number of GPUs."""
        return self.use is not None and bool(self.facts.names(self.use) & BARRIERS)

    @property
    def use_text(self) -> str:
        return source(self.use) if self.use is not None else ""

    @cached_property
    def choice_place(self) -> str:
        assert self.choice is not None
        place = self.facts.place(self.choice)
        return f"{place.path}:{place.line}"

    @property
    def places(self) -> tuple[Related, ...]:
        found = []
        if self.use is not None:
            where = "on a GPU that NCCL guesses" if self.is_guessed else "on GPU 0 of the node"
            found.append(self.facts.related(self.use, f"this runs {where}"))
        if self.choice is not None:
            found.append(self.facts.related(self.choice, "the device is chosen here"))
        return tuple(found)

    @property
    def reordering(self) -> Fix | None:
        """The choice moved before the group, where both are statements of one block."""
        if self.choice is None:
            return None
        group, choice = self.node.parent, self.choice.parent
        if not isinstance(group, nodes.Expr) or not isinstance(choice, nodes.Expr):
            return None
        if group.parent is not choice.parent or not follows(choice, group):
            return None
        file = self.facts.values.module_of(choice).source
        line, end = choice.fromlineno, choice.end_lineno or choice.fromlineno
        if line == group.fromlineno or "#" in "".join(file.lines[line - 1 : end]):
            return None
        if line != end or self._asks_the_group(choice):
            return None
        text = file.lines[line - 1].strip()
        if end + 1 > len(file.lines):
            gone = file.place(
                line - 1,
                len(file.lines[line - 2].encode()),
                end,
                len(file.lines[end - 1].encode()),
            )
        else:
            gone = file.place(line, 0, end + 1, 0)
        edits = (self.facts.insert_before(group, text), Edit(gone, ""))
        return Fix("Choose the device first", edits, safe=False)

    def _asks_the_group(self, choice: Node) -> bool:
        """Whether the choice needs a group, itself or in a function of the project."""
        asked = [part for part in walk(choice) if isinstance(part, nodes.Call)]
        asked += [
            inner
            for call in list(asked)
            for target in self.facts.graph.targets_of(call)
            for inner in target.calls
        ]
        return any(
            name.startswith("torch.distributed.")
            for call in asked
            for name in self.facts.names(call)
        )


def unplaced_groups(facts: Facts) -> Iterator[UnplacedGroup]:
    if not any(facts.calls_to(INIT_GROUP)) or is_told_its_gpu(facts):
        return
    seen: set[int] = set()
    for telling in facts.once(Story).tellings:
        for event in telling:
            call = event.call
            if not facts.names(call) & INIT_GROUP or id(call) in seen:
                continue
            seen.add(id(call))
            if is_alone(facts, call):
                continue
            if _is_nccl(facts, call) and not _has_device(call):
                found = _unplaced(facts, event, telling)
                if found is not None:
                    yield found


def _unplaced(facts: Facts, event: Event, telling: list[Event]) -> UnplacedGroup | None:
    if any(facts.names(e.call) & SET_DEVICE for e in telling[: event.number]):
        return None
    use: nodes.Call | None = None
    for later in telling[event.number + 1 :]:
        if facts.names(later.call) & SET_DEVICE:
            return UnplacedGroup(facts, event.call, use, later.call)
        if use is None and _uses_current_device(facts, later.call):
            use = later.call
    unit = facts.values.unit_of(event.call)
    for _, other in facts.calls_to(SET_DEVICE):
        if not facts.ranks.are_apart(unit, other):
            return None  # somewhere that this story does not come to
    return UnplacedGroup(facts, event.call, use, None)


def _uses_current_device(facts: Facts, call: nodes.Call) -> bool:
    names = facts.names(call)
    if names & BARRIERS or any("object" in name for name in names & COLLECTIVES):
        return True
    func = call.func
    if isinstance(func, nodes.Attribute) and func.attrname == "cuda":
        return not call.args and not call.keywords
    return (
        isinstance(func, nodes.Attribute)
        and func.attrname == "to"
        and bool(call.args)
        and getattr(call.args[0], "value", None) == "cuda"
    )


def _is_nccl(facts: Facts, call: nodes.Call) -> bool:
    given = [k.value for k in call.keywords if k.arg == "backend"] or call.args[:1]
    texts = [node.as_string() for node in given]
    for node in given:
        texts.extend(value.as_string() for value in _values_of(facts, node))
    return any("nccl" in text for text in texts)


def _has_device(call: nodes.Call) -> bool:
    return any(k.arg in ("device_id", None) for k in call.keywords)
