"""Layer 12, printing: lines that every rank prints again and again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from astroid import nodes

from ddp_lint.finding import Fix
from ddp_lint.model.checking import shows_a_check
from ddp_lint.model.codebase import raw_of
from ddp_lint.model.facts import Facts
from ddp_lint.model.flow import always_exits, conditions, loops_around, with_items
from ddp_lint.model.guards import RANKS
from ddp_lint.model.mending import main_test, under_test
from ddp_lint.model.modules import Unit
from ddp_lint.model.once import comes_once
from ddp_lint.model.processes import Place
from ddp_lint.model.several import makes_several
from ddp_lint.model.tree import Node, ancestors, dotted, is_within, statement, walk
from ddp_lint.model.wrappers import bindings_of

_RANKY = re.compile(r"rank|gpu|device|getpid|hostname|process_index", re.I)
#: What each rank has for itself, as its GPU and its process, which tell the rank as well.
_OF_ONE_RANK = frozenset(
    {"data_ptr", "memory_allocated", "max_memory_allocated", "memory_reserved",
     "max_memory_reserved", "memory_cached", "max_memory_cached", "memory_stats",
     "memory_summary", "mem_get_info"}
)  # fmt: skip
_DEEPEST = 3
#: Texts that are not printed every time.
_WARNING = re.compile(r"\bwarn|\berror|deprecat", re.I)
#: Branches that are not for every day: debugging, and what is made or fetched once.
_RARE = re.compile(r"debug|verbose|profil|exists|is_file|is_dir|download", re.I)


@dataclass(frozen=True)
class RepeatedPrint(Place):
    """A ``print`` in a loop of the training or the evaluation, on all ranks."""

    loop: Node

    @cached_property
    def tells_the_rank(self) -> bool:
        """Whether the text says which rank speaks."""
        call = self.node
        assert isinstance(call, nodes.Call)
        return any(_tells_rank(self.facts, argument, self.unit, 0) for argument in call.args)

    @property
    def is_last_word(self) -> bool:
        """Whether the program leaves right after it."""
        at = statement(self.node)
        block = getattr(at.parent, "body", [])
        for part in (block, getattr(at.parent, "orelse", [])):
            if isinstance(part, list) and at in part:
                after = part[part.index(at) :]
                last = always_exits(after)
                return isinstance(last, nodes.Raise | nodes.Expr | nodes.Break)
        return False

    @cached_property
    def shows_a_check(self) -> bool:
        """Whether it shows two values that should be the same: it tells on which ranks they are
        not."""
        call, unit = self.node, self.unit
        assert isinstance(call, nodes.Call)
        here = self.facts.values.unit_of(self.loop) is unit and is_within(call, self.loop)
        return shows_a_check(call, call.args, unit, self.loop if here else unit.node)

    @property
    def shows_its_own(self) -> bool:
        """Whether it shows what each rank has for itself, as the memory of its GPU."""
        call = self.node
        assert isinstance(call, nodes.Call)
        return any(_is_of_one_rank(self.facts, argument, 0) for argument in call.args)

    @property
    def guarding(self) -> Fix | None:
        """None where nobody else tells what the other ranks have."""
        if self.shows_its_own:
            return None
        test = main_test(self.facts, self.node)
        if test is None:
            return None
        edits = under_test(self.facts, self.node, test)
        return Fix("Print on the first rank only", edits, safe=False) if edits else None


def repeated_prints(facts: Facts) -> Iterator[RepeatedPrint]:
    """Prints of all ranks in loops, where nothing makes the others quiet."""
    if facts.once(makes_several) is None or _is_quiet_elsewhere(facts):
        return
    loops = _loops_of_work(facts)
    for call, unit in facts.calls_to({"builtins.print"}):
        if any(keyword.arg in ("file", None) for keyword in call.keywords) or not call.args:
            continue
        if not _is_builtin(facts, call) or _WARNING.search(call.as_string()):
            continue
        if _is_of_logger(facts, unit):
            continue
        loop = _loop_around(facts, call, unit, loops, set())
        if loop is None or any(_is_handler(parent) for _, parent in ancestors(call)):
            continue
        if any(
            _RARE.search(c.test.as_string()) or facts.tensors.made_from_device(c.test)
            for c in conditions(call)
        ):
            continue
        yield RepeatedPrint(facts, call, loop)


def _is_builtin(facts: Facts, call: nodes.Call) -> bool:
    return isinstance(call.func, nodes.Name) and facts.names(call) == {"builtins.print"}


def _is_of_logger(facts: Facts, unit: Unit) -> bool:
    """Whether the project calls this a logger of its own, which knows who is to speak: the
    function around a print, its class, or the object through which all callers reach it."""
    loggers = facts.words.loggers
    if not loggers:
        return False
    at: Unit | None = unit
    while at is not None:
        names = {at.name, *([cls.name for cls in facts.values.mro(at.owner)] if at.owner else ())}
        if names & loggers:
            return True
        at = at.outer
    sites = facts.graph.sites_of(unit)
    return bool(sites) and all(
        not loggers.isdisjoint(dotted(site.call.func).split(".")) for site in sites
    )


def _is_handler(node: Node) -> bool:
    return isinstance(node, nodes.ExceptHandler)


def _loops_of_work(facts: Facts) -> dict[int, Node]:
    """The loops that train or evaluate, and those over epochs around them."""
    found: dict[int, Node] = {}
    for loop in facts.steps.loops:
        if loop.is_hook:
            continue
        found[id(loop.node)] = loop.node
        near = [outer for outer, unit in loop.outer_loops if unit is loop.unit]
        for outer in near or [outer for outer, _ in loop.outer_loops[:1]]:
            found[id(outer)] = outer
    for unit in facts.units:
        for node in unit.loops:
            if isinstance(node, nodes.For) and facts.roles_of(node.iter) & {
                "loader",
                "prepared loader",
            }:
                found[id(node)] = node
    return found


def _loop_around(
    facts: Facts, node: Node, unit: Unit, loops: dict[int, Node], seen: set[int]
) -> Node | None:
    """The loop that comes to ``node`` again and again with the same on all ranks, through calls
    too."""
    if any(_deals_out(context) for context, _ in with_items(node)):
        return None
    for loop in loops_around(node):
        if id(loop) in loops and not comes_once(facts, node, loop):
            return loop
    if comes_once(facts, node):
        return None
    for site in facts.graph.sites_of(unit):
        if id(site.call) in seen or site.handed or facts.guards.audience(site.call).nobody:
            continue
        seen.add(id(site.call))
        found = _loop_around(facts, site.call, site.caller, loops, seen)
        if found is not None:
            return found
    return None


def _deals_out(context: Node) -> bool:
    """``split_between_processes(prompts)``: what each rank prints there is its own share."""
    func = getattr(context, "func", None)
    return func is not None and getattr(func, "attrname", "") == "split_between_processes"


def _tells_rank(facts: Facts, node: Node, unit: Unit, depth: int) -> bool:
    if depth > 4:
        return False
    for at in walk(node):
        match at:
            case nodes.Const(value=str(text)):
                if _RANKY.search(text):
                    return True
            case nodes.Call() | nodes.Attribute():
                called = at.func if isinstance(at, nodes.Call) else at
                if _RANKY.search(dotted(called).rpartition(".")[2]):
                    return True
            case nodes.Name():
                if _RANKY.search(at.name) or _ranks_disagree(facts, at):
                    return True
                if any(
                    _tells_rank(facts, text, where, depth + 1)
                    for text, where in _texts_of(facts, at)
                ):
                    return True
    return False


def _is_of_one_rank(facts: Facts, node: Node, depth: int) -> bool:
    """Whether a value is made of what each process has for itself, whatever it works on."""
    for part in walk(node):
        if isinstance(part, nodes.Call) and _last_name(part.func) in _OF_ONE_RANK:
            return True
        if not isinstance(part, nodes.Name) or depth == _DEEPEST:
            continue
        values = [
            b.value for b, _ in bindings_of(facts, part) if b.value is not None and not b.path
        ]
        if any(_is_of_one_rank(facts, value, depth + 1) for value in values):
            return True
    return False


def _last_name(func: Node) -> str:
    return func.attrname if isinstance(func, nodes.Attribute) else dotted(func)


def _ranks_disagree(facts: Facts, node: Node) -> bool:
    return len({repr(facts.guards.value(node, rank)) for rank in RANKS}) > 1


def _texts_of(facts: Facts, name: nodes.Name) -> Iterator[tuple[Node, Unit]]:
    """The texts that a name stands for, also as callers pass them."""
    for binding, unit in bindings_of(facts, name):
        if binding.path == ("param",):
            for site in facts.graph.sites_of(unit):
                given = facts.graph.given(site, unit, binding.name)
                if given is not None and _is_text(given):
                    yield given, site.caller
        elif not binding.path and binding.value is not None and _is_text(binding.value):
            yield binding.value, unit


def _is_text(node: Node) -> bool:
    """A text, or a name that may stand for one; no computed value."""
    if isinstance(node, nodes.JoinedStr | nodes.Const | nodes.Name):
        return True
    if isinstance(node, nodes.BinOp):
        return _is_text(node.left) or _is_text(node.right)
    return isinstance(node, nodes.Call) and getattr(node.func, "attrname", "") in (
        "format",
        "join",
    )


def _is_quiet_elsewhere(facts: Facts) -> bool:
    """Whether the program takes ``print`` or its output away from other ranks."""
    for module in facts.modules:
        for name in ("print", "stdout"):
            for _, owner, _ in module.attribute_stores.get(name, ()):
                if dotted(owner).rpartition(".")[2] in (
                    "builtins",
                    "__builtin__",
                    "sys",
                ) and _is_reached(facts, owner):
                    return True
        for unit in module.units:
            if "print" in unit.bindings and not unit.is_function:
                return True
    for call, _ in facts.calls:
        name = dotted(call.func)
        if name.endswith(("redirect_stdout", "Logger")) and "stdout" in call.as_string():
            return True
        if name.endswith("dup2"):
            return True
    return _is_started_quietly(facts)


def _is_reached(facts: Facts, node: Node) -> bool:
    unit = facts.values.unit_of(node)
    return any(unit is one for one in facts.units)


def _is_started_quietly(facts: Facts) -> bool:
    """Whether a file of the project starts this script with its output sent elsewhere."""
    scripts = {root.key.rpartition("/")[2] for root in facts.graph.roots}
    for file in facts.values.codebase.project.files.values():
        raw = raw_of(file)
        if b"stdout=" in raw and b"Popen" in raw and b"rank" in raw:
            folder = file.name.rpartition("/")[0]
            if any(root.key.rpartition("/")[0] == folder for root in facts.graph.roots):
                return True
            if any(script.encode() in raw for script in scripts):
                return True
    return False
