"""Layer 10, predicates: functions that answer whether this is the first rank, tested uncalled."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from astroid import nodes

from ddp_lint.finding import Fix
from ddp_lint.model.facts import Facts, Spot
from ddp_lint.model.guards import RANKS
from ddp_lint.model.memory import remembered
from ddp_lint.model.modules import Module, Unit
from ddp_lint.model.origins import Api, Code, Origin
from ddp_lint.model.torch_api import MAIN_NAMES
from ddp_lint.model.tree import COMPREHENSIONS, Node, dotted, walk

#: Functions of libraries that answer yes or no about the processes of a job.
_ANSWERS = frozenset(
    {"torch.distributed.is_initialized", "torch.distributed.is_available",
     "torch.distributed.is_torchelastic_launched"}
)  # fmt: skip
_WORDS = (
    "main_?proc|is_main|master|is_first|primary|chief|leader|rank_?zero|rank_?0|is_initialized"
    "|is_available|elastic|coordinator"
)
_SPEAKING = re.compile(_WORDS, re.I)
#: Such a name, and after it what comes after a test rather than what comes after a function.
_TESTED = re.compile(rf"(?:{_WORDS})\w*(?:\s*[:)\n]|\s+(?:and|or|else)\b)".encode())
_LIBRARIES = ("torch.", "transformers.", "mmengine.", "mmcv.", "deepspeed.", "diffusers.", "timm.")


@dataclass(frozen=True)
class UncalledTest(Spot):
    """A test of a function that answers a question about ranks, instead of its answer."""

    needs_arguments: bool

    @property
    def name(self) -> str:
        return dotted(self.node)

    @property
    def calling(self) -> Fix | None:
        if self.needs_arguments:
            return None
        return Fix(
            "Call the function", (self.facts.replace(self.node, f"{self.name}()"),), safe=True
        )


def uncalled_tests(facts: Facts) -> Iterator[UncalledTest]:
    """Every place of the program where such a function itself is tested."""
    for module in facts.modules:
        for node in tested(module, facts.words.guards):
            origins = facts.origins(node)
            if origins and all(_is_predicate(facts, origin) for origin in origins):
                needs = any(_needs_arguments(origin) for origin in origins)
                yield UncalledTest(facts, node, needs)


@remembered
def tested(module: Module, guards: frozenset[str]) -> tuple[Node, ...]:
    """Names and attributes of a file that are tested for their truth, as they are.

    Only those whose names speak of processes, or are among the project's ``guards``: a function
    of another name is no slip of the pen.
    """
    if not guards and _TESTED.search(module.source.raw.lower()) is None:
        return ()
    found: list[Node] = []
    for node in walk(module.tree):
        if isinstance(node, nodes.If | nodes.While | nodes.IfExp | nodes.Assert):
            found.extend(_plain_tests(node.test))
        elif isinstance(node, COMPREHENSIONS):
            for generator in node.generators:
                for test in generator.ifs:
                    found.extend(_plain_tests(test))
        elif isinstance(node, nodes.Assign | nodes.AnnAssign | nodes.Return) and isinstance(
            node.value, nodes.BoolOp | nodes.UnaryOp
        ):
            found.extend(_plain_tests(node.value, whole=False))
    return tuple(node for node in found if _speaks_of_processes(node, guards))


def _speaks_of_processes(node: Node, guards: frozenset[str]) -> bool:
    name = getattr(node, "attrname", getattr(node, "name", ""))
    return name in guards or _SPEAKING.search(name) is not None


def _plain_tests(test: Node, whole: bool = True) -> Iterator[Node]:
    match test:
        case nodes.BoolOp():
            # The last operand of a value is handed on, not tested.
            tested_ones = test.values if whole else test.values[:-1]
            for value in tested_ones:
                yield from _plain_tests(value)
        case nodes.UnaryOp(op="not"):
            yield from _plain_tests(test.operand)
        case nodes.Name() | nodes.Attribute() if whole:
            yield test


def _is_predicate(facts: Facts, origin: Origin) -> bool:
    match origin:
        case Code(unit=unit):
            return _answers_about_ranks(facts, unit)
        case Api(name=name):
            if name in _ANSWERS:
                return True
            return name.startswith(_LIBRARIES) and name.rpartition(".")[2] in MAIN_NAMES
    return False


def _answers_about_ranks(facts: Facts, unit: Unit) -> bool:
    if not isinstance(unit.node, nodes.FunctionDef) or not unit.returns:
        return False
    if unit.name in MAIN_NAMES or unit.name in facts.words.guards:
        return True
    answers = [facts.guards.answer(unit, rank) for rank in RANKS]
    if all(isinstance(answer, bool) for answer in answers):
        return len(set(answers)) > 1 or _asks_for_group(facts, unit)
    return False


def _asks_for_group(facts: Facts, unit: Unit) -> bool:
    return any(facts.names(call) & _ANSWERS for call in unit.calls)


def _needs_arguments(origin: Origin) -> bool:
    if not isinstance(origin, Code):
        return False
    unit = origin.unit
    required = [name for name in unit.parameters if unit.default_of(name) is None]
    return len(required) > (1 if origin.receiver is not None and unit.is_method else 0)
