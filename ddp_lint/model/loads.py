"""Layer 13, loads: checkpoints that are read, onto which device, and before they are written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from astroid import nodes

from ddp_lint.finding import Edit, Fix, Related
from ddp_lint.model.facts import Facts
from ddp_lint.model.frames import key
from ddp_lint.model.guards import FIRST, PEER, RANKS
from ddp_lint.model.mending import distributed_name, has_group
from ddp_lint.model.modules import Unit
from ddp_lint.model.paths import Paths, file_name, pieces
from ddp_lint.model.processes import has_gpus, is_told_its_gpu
from ddp_lint.model.saves import saves
from ddp_lint.model.several import makes_several
from ddp_lint.model.states import Load, loads, restores
from ddp_lint.model.story import Event, Story
from ddp_lint.model.torch_api import COLLECTIVES, DISTRIBUTED_MAKERS, ROLES
from ddp_lint.model.tree import Node, statement, walk

_WAITING = frozenset(
    {"wait_for_everyone", "barrier", "gather", "gather_for_metrics", "reduce", "all_gather",
     "prepare", "backward"}
)  # fmt: skip


#: What makes one file of a sharded checkpoint, with tensors that it allocates on the CPU.
_GATHERING = frozenset({"torch.distributed.checkpoint.format_utils.dcp_to_torch_save"})
_TARGET = "torch_save_path"

#: What keeps numbers and no tensors, by what it is called.
_WITHOUT_TENSORS = re.compile(r"sampler|sched|loader|dataset|\brng|counter", re.I)


@dataclass(frozen=True)
class RestoringLoad(Load):
    """A ``torch.load`` whose value goes into a ``load_state_dict``."""

    @cached_property
    def is_placed(self) -> bool:
        """Whether it says where the tensors go, or might."""
        if len(self.call.args) > 1:
            return True
        return any(k.arg in ("map_location", None) for k in self.call.keywords)

    @property
    def by_all(self) -> bool:
        """Whether all ranks read it, and read the same file."""
        if self.facts.ranks.way_of_all(self.node) is None or not all(self.audience.reached):
            return False
        if not self.facts.ranks.is_run(self.unit) and self._is_in_a_script:
            return False
        return self.path is None or not Paths(self.facts, unknown=False).may_differ(self.path)

    @property
    def _is_in_a_script(self) -> bool:
        return any(root.is_script for root in self.facts.graph.roots)

    @cached_property
    def is_of_the_cpu(self) -> bool:
        """Whether the program itself writes this file, or one of unknown name, from the CPU."""
        if self._is_gathered:
            return True
        for save in saves(self.facts):
            if save.path is None or self.path is None or save.value is None:
                continue
            both = isinstance(save.path, nodes.Const) and isinstance(self.path, nodes.Const)
            if both and save.path.as_string() != self.path.as_string():
                continue
            told = [*pieces(self.facts, save.value, set(), 0), *_stored(save.unit, save.value)]
            if any(_is_on_cpu(piece) for piece in told):
                return True
        return False

    @property
    def _is_gathered(self) -> bool:
        """Whether nothing but what allocates on the CPU writes a file of this name."""
        name = file_name(self.facts, self.path)
        if name is None or name not in self.facts.once(_gathered):
            return False
        return all(file_name(self.facts, save.path) != name for save in saves(self.facts))

    @cached_property
    def ignored_parameter(self) -> str | None:
        """A parameter ``map_location`` of the function around it, which it does not pass on."""
        if self.unit.is_function and "map_location" in self.unit.parameters:
            return "map_location"
        return None

    @property
    def placing(self) -> Fix:
        """``map_location`` as the last argument."""
        file = self.facts.values.module_of(self.node).source
        last = [*self.call.args, *self.call.keywords][-1]
        line, column = last.end_lineno or 1, last.end_col_offset or 0
        place = file.place(line, column, line, column)
        value = self.ignored_parameter or '"cpu"'
        edit = Edit(place, f", map_location={value}")
        return Fix("Say where the tensors go", (edit,), safe=True)


def _stored(unit: Unit, value: Node) -> Iterator[Node]:
    """What the function around a save puts into the dictionary that it saves, key by key."""
    names = {node.name for node in walk(value) if isinstance(node, nodes.Name)}
    for store in unit.subscript_stores:
        given = getattr(store.parent, "value", None)
        if getattr(store.value, "name", None) in names and given is not None:
            yield given


def _is_on_cpu(value: Node) -> bool:
    text = value.as_string()
    return ".cpu()" in text or "to('cpu')" in text or "offload_to_cpu=True" in text


def _gathered(facts: Facts) -> frozenset[str]:
    """The names of the files that the program puts together from a distributed checkpoint."""
    found = (
        file_name(facts, argument)
        for call, _ in facts.calls_to(_GATHERING)
        for argument in [*call.args[1:2], *(k.value for k in call.keywords if k.arg == _TARGET)]
    )
    return frozenset(name for name in found if name is not None)


def restoring_loads(facts: Facts) -> Iterator[RestoringLoad]:
    """Loads of checkpoints in a program of several processes with GPUs."""
    if facts.once(makes_several) is None or not facts.once(has_gpus):
        return
    if facts.once(is_told_its_gpu):
        return  # GPU 0 is another one for each process
    fed = {
        id(call)
        for restore in restores(facts)
        if not _WITHOUT_TENSORS.search(restore.target.as_string())
        for call, _ in restore.loads
    }
    for load in loads(facts):
        if id(load.node) in fed:
            yield RestoringLoad(facts, load.node)


# -- before it is written ---------------------------------------------------------------------


@dataclass(frozen=True)
class RacingLoad(Load):
    """A load by all ranks of what one rank saves, with nothing between that they wait for."""

    save: nodes.Call

    @property
    def places(self) -> tuple[Related, ...]:
        return (self.facts.related(self.save, "one rank writes it here"),)

    @property
    def save_place(self) -> str:
        place = self.facts.place(self.save)
        return f"{place.path}:{place.line}"

    @property
    def waiting(self) -> Fix | None:
        """A barrier before the load, where both are in one block."""
        name = distributed_name(self.facts.values.module_of(self.node))
        mine, other = statement(self.node), statement(self.save)
        at: Node | None = other
        while at is not None and at.parent is not mine.parent:
            at = at.parent
        if name is None or at is None:
            return None
        text = f"{name}.barrier()"
        if not has_group(self.facts, self.node):
            text = f"if {name}.is_initialized():\n    {text}"
        edit = self.facts.insert_before(self.node, text)
        return Fix("Wait for the rank that saves", (edit,), safe=False)


def racing_loads(facts: Facts) -> Iterator[RacingLoad]:
    if facts.once(makes_several) is None:
        return
    written = {id(save.node): save for save in saves(facts)}
    if not written or not any(facts.calls_to({"torch.load"})):
        return
    seen: set[int] = set()
    for telling in facts.once(Story).tellings:
        pending: dict[str, nodes.Call] = {}
        for event in telling:
            save = written.get(id(event.call))
            if save is not None and save.path is not None:
                name = key(save.path, event.frame)
                if _by_one(facts, event) and "<" not in name:
                    pending[name] = event.call
                else:
                    pending.pop(name, None)
            elif "torch.load" in facts.names(event.call) and pending:
                load = Load(facts, event.call)
                name = key(load.path, event.frame) if load.path is not None else "<"
                if name in pending and id(event.call) not in seen and _by_all(facts, event):
                    seen.add(id(event.call))
                    yield RacingLoad(facts, event.call, pending[name])
            elif pending and _waits(facts, event.call):
                pending.clear()


def _reached(facts: Facts, event: Event) -> list[set[bool | None]]:
    """For each rank, what the conditions on the way to an event say."""
    calls = [*event.chain, event.call]
    return [{facts.ranks.own(call).reached[i] for call in calls} for i in range(len(RANKS))]


def _by_one(facts: Facts, event: Event) -> bool:
    reached = _reached(facts, event)
    return False in reached[RANKS.index(PEER)] and False not in reached[RANKS.index(FIRST)]


def _by_all(facts: Facts, event: Event) -> bool:
    return all(found == {True} for found in _reached(facts, event))


def _waits(facts: Facts, call: nodes.Call) -> bool:
    names = facts.names(call)
    if names & COLLECTIVES or names & DISTRIBUTED_MAKERS:
        return True
    func = call.func
    if isinstance(func, nodes.Attribute) and func.attrname in _WAITING:
        return func.attrname == "backward" or any(
            role in ("accelerator", "fabric") for role in facts.roles_of(func.expr)
        )
    return any(ROLES.get(name) in ("ddp", "fsdp") for name in names)
