"""Layer 5, launching: from where on a program is several processes.

A script that starts its ranks itself (``mp.spawn``, ``Process``) is one process until then, and
one again afterwards.  Where a setting decides whether there is a group at all, the arm without
it has one process, too.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property

from astroid import nodes

from ddp_lint.model.calls import CallGraph
from ddp_lint.model.flow import conditions, parts_of
from ddp_lint.model.modules import Unit
from ddp_lint.model.torch_api import DISTRIBUTED_MAKERS, INIT_GROUP
from ddp_lint.model.tree import Node, walk

#: A flag that the start itself sets says nothing about what comes after it.
_CHANGED_BY_START = re.compile(r"init|ready|done|setup|started|available", re.I)

_WAITING_SPAWNERS = frozenset(
    {
        "torch.multiprocessing.spawn",
        "torch.multiprocessing.spawn.spawn",
        "torch.multiprocessing.start_processes",
    }
)


class Start:
    """How one program comes to have ranks."""

    def __init__(self, graph: CallGraph) -> None:
        self.graph = graph

    def is_launcher(self, unit: Unit) -> bool:
        """Whether ``unit`` runs in the process that starts the ranks, and only there."""
        return self._launches_all and id(unit) not in self._launched

    @cached_property
    def _launches_all(self) -> bool:
        """Whether every group of the program is made in processes that it starts itself."""
        makers = [unit for _, unit in self._makers(DISTRIBUTED_MAKERS)]
        return bool(makers) and all(id(unit) in self._launched for unit in makers)

    @cached_property
    def ends_together(self) -> bool:
        """Whether every group is made by ranks of an ``mp.spawn`` that waits for them: when one
        fails, it ends the others at once."""
        return self._launches_all and all(
            bool(self.graph.values.names_called(call) & _WAITING_SPAWNERS) and _joins(call)
            for call in self._spawning
        )

    @cached_property
    def _spawning(self) -> list[nodes.Call]:
        """The calls that start processes."""
        return [
            site.call
            for unit in self.graph.units
            for site in self.graph.sites_of(unit)
            if site.spawned
        ]

    @cached_property
    def _launched(self) -> set[int]:
        """The functions, by identity, that started processes run."""
        called: dict[int, list[Unit]] = defaultdict(list)
        todo: list[Unit] = []
        for unit in self.graph.units:
            for site in self.graph.sites_of(unit):
                called[id(site.caller)].append(unit)
                if site.spawned:
                    todo.append(unit)
        found: set[int] = set()
        while todo:
            unit = todo.pop()
            if id(unit) not in found:
                found.add(id(unit))
                todo += called[id(unit)]
                todo += [one for one in unit.inside if not self.graph.sites_of(one)]
        return found

    def is_without_ranks(self, node: Node) -> bool:
        """Whether ``node`` stands in the arm of a setting that makes no group."""
        return bool(self._settings) and any(
            self._settings.get(test.as_string(), holds) is not holds
            for condition in conditions(node)
            for test, holds in parts_of(condition.test, condition.holds)
        )

    @cached_property
    def _settings(self) -> dict[str, bool]:
        """Tests of settings, as written, that every group of the program stands under."""
        found: list[dict[str, bool]] = []
        for call, _ in self._makers(INIT_GROUP):
            found.append(
                {
                    test.as_string(): holds
                    for condition in conditions(call)
                    for test, holds in parts_of(condition.test, condition.holds)
                    if _is_setting(test)
                }
            )
        if not found:
            return {}
        first, *others = found
        return {
            test: holds
            for test, holds in first.items()
            if all(other.get(test) is holds for other in others)
        }

    def _makers(self, names: frozenset[str]) -> Iterator[tuple[nodes.Call, Unit]]:
        for unit in self.graph.units:
            for call in unit.calls:
                if self.graph.values.names_called(call) & names:
                    yield call, unit


def _joins(call: nodes.Call) -> bool:
    """Whether ``mp.spawn(fn, args, nprocs, join)`` waits for its processes, as it does untold."""
    given = [k.value for k in call.keywords if k.arg == "join"] or call.args[3:4]
    return all(isinstance(node, nodes.Const) and node.value is True for node in given)


def _is_setting(test: Node) -> bool:
    """Names, attributes and constants, and nothing that asks how far the program is."""
    for node in walk(test):
        if isinstance(node, nodes.Call):
            return False
        name = getattr(node, "attrname", getattr(node, "name", ""))
        if isinstance(name, str) and _CHANGED_BY_START.search(name):
            return False
    return True
