"""Layer 8, facts: everything that is known of one program, and the way from a node to a finding.

The modules above this one each know a subject (synchronizations, gradients, checkpoints,
data, collectives) and speak of it in nouns; they all stand on these facts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeVar

from astroid import nodes

from ddp_lint.finding import Draft, Edit, Fix, Level, Place, Related
from ddp_lint.model.calls import CallGraph, Wiring
from ddp_lint.model.counters import holds_from_then_on
from ddp_lint.model.flow import Condition, always_exits, parts_of
from ddp_lint.model.gates import Kind, kind_of_test
from ddp_lint.model.guards import RANKS, Audience, Guards
from ddp_lint.model.modules import Module, Unit
from ddp_lint.model.origins import Made, Origins
from ddp_lint.model.ranks import Ranks
from ddp_lint.model.remarks import remark_above
from ddp_lint.model.roles import Roles
from ddp_lint.model.steps import Happening, StepLoop, Steps
from ddp_lint.model.tensors import Tensors
from ddp_lint.model.to_device import asks_for_another_device
from ddp_lint.model.tree import (
    Loop,
    Node,
    ancestors,
    block_of,
    dotted,
    position,
    source,
    statement,
    walk,
)
from ddp_lint.sources import SourceFile

_WARNINGS = frozenset({"warn", "warning", "error", "critical"})

T = TypeVar("T")
Often = Literal["every step", "each update", "some steps", "on a flag", "unknown"]


_ENVIRONMENT = re.compile(
    r"is_available|device\.type|device ==|\.distributed\b|world_size|is_initialized|\bamp\b"
    r"|use_amp|n_gpu|'cuda'"
)


class Facts:
    """One program: what its entry point reaches, and what can be said about it."""

    def __init__(self, wiring: Wiring, roots: list[Module]) -> None:
        self.values = wiring.values
        self.words = wiring.values.codebase.project.words
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
        return self.graph.modules

    @cached_property
    def calls(self) -> list[tuple[nodes.Call, Unit]]:
        return [(call, unit) for unit in self.units for call in unit.calls]

    @cached_property
    def _made(self) -> dict[Callable[[Facts], Any], Any]:
        return {}

    def once(self, maker: Callable[[Facts], T]) -> T:
        """What ``maker`` makes of this program; it is asked once."""
        if maker not in self._made:
            self._made[maker] = maker(self)
        found: T = self._made[maker]
        return found

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
        if any(
            isinstance(parent, nodes.ExceptHandler)
            for node in (*(call for call, _ in happening.chain), happening.node)
            for _, parent in ancestors(node)
        ):
            return "unknown"
        if _leaves_the_loop(happening, loop) or _only_warns(happening):
            return "unknown"
        found: set[Often] = {"every step"}
        for condition, unit in loop.conditions_of(happening):
            if _ends_the_loop(condition, loop, unit):
                continue
            if asks_for_another_device(self.graph, condition):
                return "unknown"
            kind = self._kind_of_condition(condition, loop)
            if kind is None or (kind == "gate" and _skips_the_first(condition, loop)):
                continue
            if kind == "gate":
                if not self._gates_the_update(condition, loop, unit):
                    return "some steps"
                found.add("each update")
            elif kind == "data":
                # Leaving on bad data (a loss that is not finite, an empty batch) is the
                # exception; what stands behind it runs on every ordinary step.
                if condition.exit is None:
                    found.add("unknown")
            elif kind == "flag":
                found.add("on a flag")
        order: tuple[Often, ...] = ("unknown", "each update", "on a flag", "every step")
        return next(often for often in order if often in found)

    def _kind_of_condition(self, condition: Condition, loop: StepLoop) -> Kind | None:
        """What a condition decides on, but for its parts that hold for the rest of the run once
        they do; None where nothing else is asked."""
        kind = self.kind_of_test(condition.test, loop)
        if kind != "gate":
            return kind
        parts = list(parts_of(condition.test, condition.holds))
        others = [part for part, holds in parts if not holds_from_then_on(self, part, holds, loop)]
        if len(others) == len(parts):
            return kind
        kinds = {self.kind_of_test(part, loop) for part in others}
        order: tuple[Kind, ...] = ("gate", "data", "flag", "rank")
        return next((kind for kind in order if kind in kinds), None)

    def _gates_the_update(self, condition: Condition, loop: StepLoop, unit: Unit) -> bool:
        """Whether the optimizer steps under the same condition: the gate of an accumulation."""
        text = condition.test.as_string(), condition.holds
        for happening in loop.calls:
            if self.steps.is_optimizer_step(happening.call):
                for other, where in loop.conditions_of(happening):
                    if other.test is condition.test:
                        return True
                    if where is unit and (other.test.as_string(), other.holds) == text:
                        return True
        return False

    def kind_of_test(self, test: Node, loop: StepLoop | None) -> Kind:
        """What a condition decides on: the rank, which step it is, data, or a setting."""
        return kind_of_test(self, test, loop)

    def asks_environment(self, test: Node) -> bool:
        """``torch.cuda.is_available()``, ``world_size > 1``, ``device.type == "cuda"``: what the
        machine or the job is."""
        return all(self.guards.truth(test, rank) is True for rank in RANKS) or (
            _ENVIRONMENT.search(test.as_string()) is not None
        )

    @cached_property
    def store_true_options(self) -> frozenset[str]:
        """Options of the command line that are off unless asked for."""
        found: set[str] = set()
        for call, _ in self.calls:
            if isinstance(call.func, nodes.Attribute) and call.func.attrname == "add_argument":
                values = {k.arg: getattr(k.value, "value", None) for k in call.keywords}
                if values.get("action") != "store_true":
                    continue
                names = [a.value for a in call.args if isinstance(a, nodes.Const)]
                found.update(str(name).lstrip("-").replace("-", "_") for name in names)
        return frozenset(found)

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
        """New lines before the statement of ``node``, indented as it is; for further lines see
        ``insert_after``."""
        file = self.values.module_of(node).source
        at = statement(node)
        decorators: nodes.Decorators | None = getattr(at, "decorators", None)
        line = (decorators or at).fromlineno or 1
        return self._insert_above(file, line, text)

    def insert_decorator(self, node: nodes.FunctionDef, text: str) -> Edit:
        """A decorator next to the function: what is above it may give no function."""
        file = self.values.module_of(node).source
        above = node.decorators.end_lineno if node.decorators is not None else None
        line = above + 1 if above is not None else node.lineno or 1
        while not file.lines[line - 1].lstrip().startswith(("def", "async")):
            line += 1
        return self._insert_above(file, line, text)

    def _insert_above(self, file: SourceFile, line: int, text: str) -> Edit:
        indent = _indent(file.lines[line - 1])
        place = file.place(line, len(indent.encode()), line, len(indent.encode()))
        newline = _newline(file.text)
        lines = [_indented(one, indent) for one in text.split("\n")]
        return Edit(place, f"{newline.join(lines).lstrip()}{newline}{indent}")

    def insert_after(self, node: Node, text: str) -> Edit:
        """New lines after the statement of ``node``, indented as it is; further lines of ``text``
        are indented by four blanks for each level.  Comments that end the body of a compound
        statement stay with it."""
        file = self.values.module_of(node).source
        at = statement(node)
        indent = _indent(file.lines[(at.fromlineno or 1) - 1])
        end = at.end_lineno or at.fromlineno or 1
        book = file.notebook
        while end < len(file.lines) and _is_comment_below(file.lines[end], indent):
            if book is not None and book.locate(end + 1)[0] != book.locate(end)[0]:
                break
            end += 1
        column = len(file.lines[end - 1].encode())
        place = file.place(end, column, end, column)
        newline = _newline(file.text)
        return Edit(place, "".join(newline + _indented(one, indent) for one in text.split("\n")))

    def delete(self, node: Node) -> Edit | None:
        """Delete the statement that is nothing but ``node``, with what was written about it, and
        the ``if`` that is there for it alone.  None where a block would be left empty, or where
        nobody can tell what a comment above it speaks of."""
        at = statement(node)
        if not isinstance(at, nodes.Expr) or at.value is not node:
            return None
        while at.parent is not None and _is_all_of_an_if(at):
            at = at.parent
        block = block_of(at)
        file = self.values.module_of(node).source
        first, last = at.fromlineno or 1, at.end_lineno or at.fromlineno or 1
        before = file.lines[first - 1][: len(_indent(file.lines[first - 1]))]
        rest = file.lines[last - 1].encode()[at.end_col_offset :].strip()
        starts_line = (at.col_offset or 0) == len(before.encode())
        if len(block) < 2 or not starts_line or (rest and not rest.startswith(b"#")):
            return None
        remark = remark_above(file, first, last)
        if remark is not None:
            subject = remark.subject(node)
            if subject == "unknown":
                return None
            first = remark.first if subject == "call" else first
        if _stands_apart(file, first, last):
            last += 1
        return Edit(file.place(first, 0, last + 1, 0), "")

    def remarks_on(self, call: Node) -> tuple[str, ...]:
        """The comment lines directly above a statement that speak of its call."""
        at = statement(call)
        first = at.fromlineno or 1
        remark = remark_above(self.values.module_of(at).source, first, at.end_lineno or first)
        return remark.lines if remark is not None and remark.subject(call) == "call" else ()

    def insert_inside(self, block: Loop | nodes.FunctionDef, text: str) -> Edit:
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


def _ends_the_loop(condition: Condition, loop: StepLoop, unit: Unit) -> bool:
    """Whether the other way leaves the loop for good: what is behind it runs on each iteration."""
    if isinstance(condition.exit, nodes.Return):
        return unit is loop.unit and not loop.is_hook
    return isinstance(condition.exit, nodes.Break | nodes.Raise | nodes.Expr)


def _skips_the_first(condition: Condition, loop: StepLoop) -> bool:
    """``if step < start: continue``: a resumed run skips ahead, then every step runs."""
    test = condition.test
    return (
        isinstance(condition.exit, nodes.Continue)
        and isinstance(loop.node, nodes.For)
        and isinstance(test, nodes.Compare)
        and len(test.ops) == 1
        and test.ops[0][0] in ("<", "<=")
        and isinstance(test.left, nodes.Name)
        and any(
            isinstance(target, nodes.AssignName) and target.name == test.left.name
            for target in walk(loop.node.target)
        )
    )


def _leaves_the_loop(happening: Happening, loop: StepLoop) -> bool:
    """Whether this stands in a block that ends the run: ``print(loss); sys.exit(1)``, or in what
    an assertion says when it fails."""
    for node in (*(call for call, _ in happening.chain), happening.node):
        for child, parent in ancestors(node):
            if parent is loop.node:
                break
            if isinstance(parent, nodes.Assert) and child is parent.fail:
                return True
            if isinstance(parent, nodes.If):
                body = parent.body if any(child is one for one in parent.body) else parent.orelse
                if any(child is one for one in body):
                    last = always_exits(body)
                    if isinstance(last, nodes.Raise | nodes.Break | nodes.Expr):
                        return True
    return False


def _only_warns(happening: Happening) -> bool:
    """Whether this stands in a block that does nothing but warn, which nobody does each time."""
    return any(
        isinstance(parent, nodes.If) and all(map(_warns, block_of(child)))
        for node in (*(call for call, _ in happening.chain), happening.node)
        for child, parent in ancestors(node)
        if child.is_statement
    )


def _warns(at: Node) -> bool:
    return (
        isinstance(at, nodes.Expr)
        and isinstance(at.value, nodes.Call)
        and dotted(at.value.func).rpartition(".")[2] in _WARNINGS
    )


def called_name(call: nodes.Call) -> str:
    """What a call calls, as written: ``self.meters.update``."""
    return f"{dotted(call.func) or source(call.func)}()"


def _loop_says(loop: StepLoop) -> str:
    if loop.is_hook:
        return f"`{loop.unit.name}` is called for every batch by the framework"
    return "this loop trains: each iteration is a step"


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _stands_apart(file: SourceFile, first: int, last: int) -> bool:
    """Whether the lines stand between blank ones, of which one is then enough."""
    if first < 2 or last >= len(file.lines):
        return False
    book = file.notebook
    if book is not None and len({book.locate(n)[0] for n in (first - 1, last + 1)}) > 1:
        return False
    return not file.lines[first - 2].strip() and not file.lines[last].strip()


def _is_all_of_an_if(at: Node) -> bool:
    """Whether a statement is all that an ``if`` runs, whose test does nothing else either."""
    above = at.parent
    if not isinstance(above, nodes.If) or above.orelse or len(above.body) != 1:
        return False
    if isinstance(above.parent, nodes.If) and block_of(above) is above.parent.orelse:
        return False  # an elif; its place between the others may matter
    return all(
        dotted(part.func).endswith(("is_available", "is_initialized"))
        for part in walk(above.test)
        if isinstance(part, nodes.Call)
    )


def _indented(line: str, indent: str) -> str:
    """A line of a fix, below ``indent``: what has four blanks there gets one level of the file."""
    rest = line.lstrip(" ")
    level = (len(line) - len(rest)) // 4
    return indent + ("\t" if "\t" in indent else "    ") * level + rest


def _is_comment_below(line: str, indent: str) -> bool:
    """Whether a line is a comment in the block of a statement that is indented by ``indent``."""
    return line.lstrip().startswith("#") and len(_indent(line)) > len(indent)


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
