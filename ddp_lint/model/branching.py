"""Subject: where Python decides on the value of a device tensor in a training step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from astroid import nodes

from ddp_lint.model.constants import alternatives
from ddp_lint.model.facts import Facts
from ddp_lint.model.needs import Need, need_of
from ddp_lint.model.origins import Expression, Item, Member
from ddp_lint.model.steps import Happening, StepLoop
from ddp_lint.model.syncs import StepSpot, is_on_device, one_a_statement, step_loops
from ddp_lint.model.tree import Node, compared, source

_TESTS = frozenset({"math.isfinite", "math.isnan", "math.isinf", "numpy.isnan", "numpy.isfinite",
                    "numpy.isinf"})  # fmt: skip
_ORDERING = frozenset({"builtins.max", "builtins.min", "builtins.sorted"})
_CONTAINERS = (nodes.List, nodes.Tuple, nodes.Dict, nodes.Set, nodes.ListComp, nodes.DictComp,
               nodes.SetComp, nodes.GeneratorExp)  # fmt: skip


@dataclass(frozen=True)
class Branch(StepSpot):
    """Python decides on the value of a device tensor."""

    test: Node

    @property
    def test_text(self) -> str:
        return source(self.test)

    @property
    def counts(self) -> bool:
        """Whether it asks a counter, of which a number of Python would say as much."""
        asked = compared(self.test) if isinstance(self.test, nodes.Compare) else [self.test]
        return any(map(self.facts.tensors.counted.counts, asked))

    @cached_property
    def need(self) -> Need:
        """What the step needs the decision for."""
        return need_of(self.facts, self.loop, self.happening)


def branches(facts: Facts) -> Iterator[Branch]:
    """Decisions of Python on a device value in one iteration of a step loop, one a statement."""
    return one_a_statement(
        branch
        for loop in step_loops(facts)
        for branch in decisions_in(facts, loop)
        if branch.on_every_step and branch.need not in ("end", "host")
    )


def decisions_in(facts: Facts, loop: StepLoop) -> Iterator[Branch]:
    """All decisions of Python on device values in one iteration of a step loop."""
    for happening in loop.happenings:
        for test in _tests(facts, loop, happening.node):
            if not _is_value(facts, test) or _is_sentinel(facts, test):
                continue
            if is_on_device(facts, test, happening):
                here = Happening(test, happening.unit, happening.chain)
                yield Branch(facts, test, loop, here, test)


def _tests(facts: Facts, loop: StepLoop, node: Node) -> Iterator[Node]:
    if isinstance(node, nodes.If | nodes.IfExp | nodes.Assert | nodes.While):
        if node is not loop.node:
            yield from _parts(node.test)
    elif isinstance(node, nodes.Comprehension):
        for test in node.ifs:
            yield from _parts(test)
    elif isinstance(node, nodes.Call):
        names = facts.names(node)
        if names & _TESTS:
            yield from node.args[:1]
        elif names & _ORDERING and len(node.args) > 1:
            yield from node.args


def _is_value(facts: Facts, test: Node) -> bool:
    """Not the truth of a container that holds tensors: whether it is empty, the host knows."""
    if not isinstance(test, nodes.Name | nodes.Attribute | nodes.Subscript):
        return True
    return not any(
        isinstance(origin, Item | Member)
        or (isinstance(origin, Expression) and isinstance(origin.node, _CONTAINERS))
        for origin in facts.origins(test)
    )


def _is_sentinel(facts: Facts, test: Node) -> bool:
    """``loss != 0`` where it is that very 0 whenever there is none: whether there is one, which
    the host knows, and no value to wait for on most steps."""
    asked = test
    told: tuple[object, ...] = (0, None)
    if isinstance(test, nodes.Compare):
        if len(test.ops) != 1 or test.ops[0][0] not in ("==", "!="):
            return False
        asked, other = test.left, test.ops[0][1]
        told = (other.value,) if isinstance(other, nodes.Const) else ()
    return any(constant.value in told for constant in alternatives(facts, asked))


def _parts(test: Node) -> Iterator[Node]:
    if isinstance(test, nodes.BoolOp):
        for value in test.values:
            yield from _parts(value)
    elif isinstance(test, nodes.UnaryOp) and test.op == "not":
        yield from _parts(test.operand)
    else:
        yield test
