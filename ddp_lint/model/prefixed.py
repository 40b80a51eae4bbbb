"""Layer 13, prefixed: loads without strictness of files whose names begin with ``module.``.

The file is what two programs share.  Where a load's path comes from outside, and the entry that
it takes from the checkpoint is written by a program beside it, that program counts too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from astroid import nodes

from ddp_lint.finding import Related
from ddp_lint.model.codebase import raw_of
from ddp_lint.model.facts import Facts, Spot
from ddp_lint.model.frames import key, resolve
from ddp_lint.model.modules import Module
from ddp_lint.model.saves import parts, saves
from ddp_lint.model.states import (
    Load,
    Restore,
    WrappedState,
    restores,
    strips_prefix,
    wrapper_of,
)
from ddp_lint.model.story import Story
from ddp_lint.model.tree import Node, dotted
from ddp_lint.sources import SourceFile

_MOST_NEIGHBOURS = 4


@dataclass(frozen=True)
class Written:
    """A state that is written: to which path, under which key, and whether of a wrapper."""

    path: str
    entry: str | None
    part: Node
    wrapped: bool
    facts: Facts

    @property
    def related(self) -> Related:
        return self.facts.related(self.part, "the state of a DDP wrapper is saved here")


@dataclass(frozen=True)
class PrefixedLoad(Spot):
    """``load_state_dict(..., strict=False)`` that finds no name of the model in the file."""

    restore: Restore
    load: nodes.Call
    written: Written

    @property
    def target_text(self) -> str:
        return self.restore.target.as_string()

    @property
    def path_text(self) -> str:
        return Load(self.facts, self.load).path_text

    @property
    def places(self) -> tuple[Related, ...]:
        return (
            self.written.related,
            self.facts.related(self.load, "and read back here"),
        )


def prefixed_loads(facts: Facts) -> Iterator[PrefixedLoad]:
    for restore in restores(facts):
        if restore.is_strict or restore.is_looked_at or not restore.into_plain_model:
            continue
        unit = facts.values.unit_of(restore.node)
        if strips_prefix(facts, unit):
            continue
        for call, entry in restore.loads:
            written = _written(facts, call, entry)
            if written is not None:
                yield PrefixedLoad(facts, restore.node, restore, call, written)
                break


def _written(facts: Facts, load: nodes.Call, entry: str | None) -> Written | None:
    """What the file holds there, where all that is known to be written is of a wrapper."""
    path = Load(facts, load).path
    names = {
        key(path, event.frame)
        for event in facts.once(Story).events()
        if event.call is load and path is not None
    }
    mine = [w for w in facts.once(writes) if w.entry == entry]
    found = [w for w in mine if w.path in names]
    if not found and entry is not None and not isinstance(path, nodes.Const):
        found = mine or list(_written_beside(facts, load, entry))
    return found[0] if found and all(w.wrapped for w in found) else None


def writes(facts: Facts) -> list[Written]:
    """Every state that the program writes, on each way to each save."""
    found = []
    by_call = {id(save.node): save for save in saves(facts)}
    for event in facts.once(Story).events():
        save = by_call.get(id(event.call))
        if save is None or save.path is None or save.value is None:
            continue
        path = key(save.path, event.frame)
        value = resolve(save.value, event.frame).node
        for part in parts(facts, value):
            if isinstance(part, nodes.Call) and dotted(part.func).endswith("state_dict"):
                wrapper = wrapper_of(facts, part)
                entry = WrappedState(facts, part, save, wrapper or part, ()).key
                found.append(Written(path, entry, part, wrapper is not None, facts))
    return found


def _written_beside(facts: Facts, load: nodes.Call, entry: str) -> Iterator[Written]:
    """What the other scripts of the same folder write under this key."""
    module = facts.values.module_of(load)
    for neighbour in _neighbours(facts, module, entry):
        other = Facts(facts.graph.wiring, [neighbour])
        yield from (w for w in writes(other) if w.entry == entry)


def _neighbours(facts: Facts, module: Module, entry: str) -> Iterator[Module]:
    folder = module.key.rpartition("/")[0]
    files = facts.values.codebase.project.files
    beside = [name for name in files if name.rpartition("/")[0] == folder]
    texts = [
        name
        for name in beside
        if f'"{entry}"' in _text(files[name]) or f"'{entry}'" in _text(files[name])
    ]
    if not texts:
        return
    count = 0
    for name in sorted(beside):
        text = _text(files[name])
        if "__main__" not in text or "DistributedDataParallel" not in text:
            continue
        found = facts.values.load(name)
        if found is not None and found not in facts.graph.roots and count < _MOST_NEIGHBOURS:
            count += 1
            yield found


def _text(file: SourceFile) -> str:
    return raw_of(file).decode("utf-8", errors="replace")
