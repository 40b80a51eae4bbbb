"""Layer 8, facts: everything that is known of one program, and the way from a node to a finding.

The modules above this one each know a subject (synchronizations, gradients, checkpoints,
data, collectives) and speak of it in nouns; they all stand on these facts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from astroid import nodes

from ddp_lint.finding import Draft, Edit, Fix, Level, Place, Related
from ddp_lint.model.calls import CallGraph, Wiring
from ddp_lint.model.gates import Kind, kind_of_test
from ddp_lint.model.guards import Audience, Guards
from ddp_lint.model.modules import Module, Unit
from ddp_lint.model.origins import Api, Folder, Made, Origins
from ddp_lint.model.ranks import Ranks
from ddp_lint.model.roles import Roles
from ddp_lint.model.steps import Happening, StepLoop, Steps
from ddp_lint.model.tensors import Tensors
from ddp_lint.model.tree import Node, ancestors, dotted, position, source, statement

Often = Literal["every step", "some steps", "on a flag", "unknown"]


class Facts:
    """One program: what its entry point reaches, and what can be said about it."""

    def __init__(self, wiring: Wiring, roots: list[Module]) -> None:
        self.values = wiring.values
        self.graph = CallGraph(wiring, roots)
        self.roles = Roles(self.graph)
        self.guards = Guards(self.graph)
        self.ranks = Ranks(self.graph, self.guards)
        self.steps = Steps(self.graph, self.guards)
        self.tensors = Tensors(self.graph, self.roles, self.steps)

    @property
    def units(self) -> list[Unit]:
        return self.graph.units

    @cached_property
    def modules(self) -> list[Module]:
        return list({id(unit.module): unit.module for unit in self.units}.values())

    @cached_property
    def calls(self) -> list[tuple[nodes.Call, Unit]]:
        return [(call, unit) for unit in self.units for call in unit.calls]

    def origins(self, node: Node | None) -> Origins:
        return self.graph.origins(node)

    def roles_of(self, node: Node | None) -> frozenset[str]:
        return self.roles.of(node)

    def audience(self, node: Node) -> Audience:
        return self.guards.audience(node)

    def names(self, call: nodes.Call) -> frozenset[str]:
        """Qualified names of what is called, where it is outside the project."""
        return self.values.names_called(call)

    @cached_property
    def _calls_by_name(self) -> dict[str, list[tuple[nodes.Call, Unit]]]:
        found: dict[str, list[tuple[nodes.Call, Unit]]] = {}
        for call, unit in self.calls:
            for name in self.names(call):
                found.setdefault(name, []).append((call, unit))
        return found

    def calls_to(self, wanted: Iterable[str]) -> Iterator[tuple[nodes.Call, Unit]]:
        """Calls of any of these qualified names anywhere in the program."""
        for name in sorted(wanted):
            yield from self._calls_by_name.get(name, ())

    def made_by(self, node: Node | None, wanted: Iterable[str]) -> Iterator[nodes.Call]:
        """The constructor calls of these names among the origins of an expression."""
        names = frozenset(wanted)
        for origin in self.origins(node):
            if isinstance(origin, Made) and origin.name in names:
                yield origin.call

    # -- how often --------------------------------------------------------------------------

    def how_often(self, loop: StepLoop, happening: Happening) -> Often:
        """On which iterations of its loop something happens.

        Rank guards do not count: one rank that waits holds up all others.
        """
        answer: Often = "every step"
        if any(
            isinstance(parent, nodes.ExceptHandler)
            for node in (*(call for call, _ in happening.chain), happening.node)
            for _, parent in ancestors(node)
        ):
            return "unknown"
        for condition, _ in loop.conditions_of(happening):
            kind = self.kind_of_test(condition.test, loop)
            if kind == "gate":
                return "some steps"
            if kind == "data":
                answer = "unknown"
            elif kind == "flag" and answer == "every step":
                answer = "on a flag"
        return answer

    def kind_of_test(self, test: Node, loop: StepLoop | None) -> Kind:
        """What a condition decides on: the rank, which step it is, data, or a setting."""
        return kind_of_test(self, test, loop)

    # -- speaking ---------------------------------------------------------------------------

    def place(self, node: Node) -> Place:
        """Where ``node`` stands; of a compound statement or definition only its first line."""
        file = self.values.module_of(node).source
        line, column = position(node)
        end_line, end_column = node.end_lineno or line, node.end_col_offset or column
        if isinstance(node, nodes.FunctionDef | nodes.ClassDef | nodes.For | nodes.While | nodes.If
                      | nodes.With | nodes.Try):  # fmt: skip
            text = file.lines[line - 1] if line <= len(file.lines) else ""
            end_line, end_column = line, len(text.rstrip().encode())
        return file.place(line, column, end_line, end_column)

    def related(self, node: Node, message: str) -> Related:
        return Related(self.place(node), message)

    def chain(self, loop: StepLoop, happening: Happening) -> tuple[Related, ...]:
        """The loop and the calls that lead from it to a happening, as places to show."""
        found = [self.related(loop.node, _loop_says(loop))]
        for call, _ in happening.chain:
            found.append(self.related(call, f"`{called_name(call)}` is called here"))
        return tuple(found)

    def draft(
        self,
        node: Node,
        message: str,
        related: Iterable[Related] = (),
        fix: Fix | None = None,
        level: Level | None = None,
    ) -> Draft:
        return Draft(self.place(node), message, tuple(related), fix, level)

    # -- mending ----------------------------------------------------------------------------

    def replace(self, node: Node, text: str) -> Edit:
        return Edit(self.exact(node), text)

    def exact(self, node: Node) -> Place:
        """All of ``node``, also where it goes over several lines."""
        line, column = position(node)
        return self.values.module_of(node).source.place(
            line, column, node.end_lineno or line, node.end_col_offset or column
        )

    def insert_before(self, node: Node, text: str) -> Edit:
        """A new statement line before the statement of ``node``, indented as it is."""
        file = self.values.module_of(node).source
        at = statement(node)
        line = at.fromlineno if not getattr(at, "decorators", None) else at.decorators.fromlineno
        indent = _indent(file.lines[line - 1])
        place = file.place(line, len(indent.encode()), line, len(indent.encode()))
        return Edit(place, f"{text}{_newline(file.text)}{indent}")

    def insert_after(self, node: Node, text: str) -> Edit:
        """A new statement line after the simple statement of ``node``, indented as it is."""
        file = self.values.module_of(node).source
        at = statement(node)
        indent = _indent(file.lines[(at.fromlineno or 1) - 1])
        end = at.end_lineno or at.fromlineno or 1
        column = len(file.lines[end - 1].encode())
        place = file.place(end, column, end, column)
        return Edit(place, f"{_newline(file.text)}{indent}{text}")

    def insert_inside(self, block: Node, text: str) -> Edit:
        """A new first statement in the body of a compound statement."""
        return self.insert_before(block.body[0], text)


@dataclass(frozen=True)
class Spot:
    """A node that a rule can speak of; the nouns of the subjects are built on this."""

    facts: Facts
    node: Node

    @property
    def text(self) -> str:
        return source(self.node)

    def finding(
        self,
        message: str,
        related: Iterable[Related] = (),
        fix: Fix | None = None,
        level: Level | None = None,
    ) -> Draft:
        return self.facts.draft(self.node, message, related, fix, level)


def called_name(call: nodes.Call) -> str:
    """What a call calls, as written: ``self.meters.update``."""
    return f"{dotted(call.func) or source(call.func)}()"


def _loop_says(loop: StepLoop) -> str:
    if loop.is_hook:
        return f"`{loop.unit.name}` is called for every batch by the framework"
    return "this loop trains: each iteration is a step"


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
