"""Layer 10, needs: what a training step needs of a value that the host has.

Most are only looked at: logged, summed, kept for later, which can wait.  Others are a term of
what is backpropagated, decide which term is, or whether the weights are updated at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from astroid import nodes

from ddp_lint.model.facts import Facts
from ddp_lint.model.flow import Condition, conditions
from ddp_lint.model.following import ANY, Following, Part, tested_for
from ddp_lint.model.modules import Unit
from ddp_lint.model.steps import Happening, StepLoop
from ddp_lint.model.tree import Node, dotted, walk_scope

#: "end": whether the run goes on; "host": an algorithm there, whose answer comes back; "size": a
#: bound of a slice; "update": whether this step updates the weights; "choice": which way it is
#: computed; "copy": the step goes on with what was copied; "bound": the number goes into what is
#: computed through ``min`` or ``max``, "term": as it is; "unsure": it goes where nobody can look;
#: "look": none of these.
Need = Literal[
    "end", "host", "size", "update", "choice", "copy", "bound", "term", "unsure", "look"
]
_NEEDS: tuple[Need, ...] = (
    "end", "host", "size", "update", "choice", "copy", "bound", "term", "unsure"
)  # fmt: skip

_MOST_PARTS = 1500
_EXITS = frozenset({"sys.exit", "exit", "quit", "os._exit", "os.abort"})
#: What a framework backpropagates of what these return.
_RETURNING = {"training_step": "loss", "compute_loss": 0}


def need_of(facts: Facts, loop: StepLoop, happening: Happening, array: bool = False) -> Need:
    """What the step needs the value for that ``happening`` is: what binds it most."""
    found = set(_Search(facts, loop).needs(happening, array))
    return next((need for need in _NEEDS if need in found), "look")


class _Search:
    def __init__(self, facts: Facts, loop: StepLoop) -> None:
        self.facts = facts
        self.loop = loop
        self.following = Following(facts, loop)

    def needs(self, happening: Happening, array: bool) -> Iterator[Need]:
        via = tested_for(happening.node) | ({"array"} if array else set())
        start = Part(happening.node, happening.chain, via=via)
        todo, seen = [start], {start.key}
        while todo and len(seen) < _MOST_PARTS:
            part = todo.pop()
            ending = next((via for via in ("size", "lost") if via in part.via), None)
            if ending is not None:
                if not self._is_seldom(part):
                    yield "size" if ending == "size" else "unsure"
                continue
            if self._is_backpropagated(part):
                yield _needed(part)
                continue
            further = list(self.following.further(part))
            if isinstance(part.node.parent, nodes.If | nodes.While) and (
                part.node is part.node.parent.test
            ):
                yield from self._decided(part, part.node.parent)
                further.extend(self._chosen(part, part.node.parent))
            for one in further:
                if one.key not in seen:
                    seen.add(one.key)
                    todo.append(one)

    # -- what is backpropagated -------------------------------------------------------------

    def _is_backpropagated(self, part: Part) -> bool:
        up = part.node.parent
        if isinstance(up, nodes.Attribute) and isinstance(up.parent, nodes.Call):
            return up.parent.func is up and self.facts.steps.is_backward(up.parent)
        if isinstance(up, nodes.Keyword):
            up = up.parent
        if isinstance(up, nodes.Call) and part.node is not up.func:
            return self.facts.steps.is_backward(up) or _changes_gradients(up)
        if isinstance(up, nodes.AugAssign):
            return dotted(up.target).endswith(".grad")
        if isinstance(up, nodes.Return) and not part.chain and self.loop.is_hook:
            wanted = _RETURNING.get(self.loop.unit.name)
            return wanted is not None and part.keys[:1] in ((), (wanted,), (ANY,))
        return False

    # -- what is decided --------------------------------------------------------------------

    def _decided(self, part: Part, branch: nodes.If | nodes.While) -> Iterator[Need]:
        if self._is_seldom(part):
            return
        if self._guards_update(branch):
            yield "update"
        if self._ends_the_run(part, branch):
            yield "end"

    def _is_seldom(self, part: Part) -> bool:
        here = Happening(part.node, self.following.unit_at(part), part.chain)
        return self.facts.how_often(self.loop, here) == "some steps"

    def _guards_update(self, branch: nodes.If | nodes.While) -> bool:
        """Whether the backward pass or the optimizer's step is left out on one of the ways."""
        return any(
            condition.test is branch.test and self._is_left_out(condition, unit)
            for happening in self._updates()
            for condition, unit in self.loop.conditions_of(happening)
        )

    def _is_left_out(self, condition: Condition, unit: Unit) -> bool:
        """Otherwise, while the loop goes on."""
        if isinstance(condition.exit, nodes.Return):
            return unit is not self.loop.unit or self.loop.is_hook
        return condition.exit is None or isinstance(condition.exit, nodes.Continue)

    def _updates(self) -> Iterator[Happening]:
        steps = self.facts.steps
        for happening in self.loop.calls:
            if steps.is_backward(happening.call) or steps.is_optimizer_step(happening.call):
                yield happening

    def _ends_the_run(self, part: Part, branch: nodes.If | nodes.While) -> bool:
        """Whether the run ends by what this step is: a loss that is small enough, a spike among
        the last ones.  What is not finite, far too large or no input at all can be refused N
        steps later as well."""
        if "finite" in part.via:
            return False
        at_top = self.following.unit_at(part) is self.loop.unit and not part.chain
        leaves = at_top and "beyond" not in part.via
        for node in _of_arms(branch):
            if leaves and isinstance(node, nodes.Break) and self._is_of_loop(node):
                return True
            if leaves and isinstance(node, nodes.Return) and not self.loop.is_hook:
                return True
            if "kept" in part.via and self._raises(node):
                return True
        return False

    def _is_of_loop(self, node: nodes.Break) -> bool:
        at = node.parent
        while at is not None and not isinstance(at, nodes.For | nodes.While):
            at = at.parent
        return at is self.loop.node

    def _raises(self, node: Node) -> bool:
        """``raise``, or a call of what does nothing else unless a setting says so."""
        if isinstance(node, nodes.Raise):
            return "NotImplemented" not in node.as_string()
        if not isinstance(node, nodes.Call):
            return False
        return dotted(node.func) in _EXITS or any(
            isinstance(inside, nodes.Raise)
            and all(_is_setting(condition.test) for condition in conditions(inside))
            for unit in self.facts.graph.targets_of(node)
            if unit.is_function
            for inside in walk_scope(unit.node)
        )

    def _chosen(self, part: Part, branch: nodes.If | nodes.While) -> Iterator[Part]:
        """What is different after the branch: what its arms assign, put away and return."""
        whole = part.chosen(part.node)
        for node in _of_arms(branch):
            if isinstance(node, nodes.Assign):
                for target in node.targets:
                    yield from self.following.bound(whole, target)
            elif isinstance(node, nodes.AugAssign | nodes.AnnAssign):
                yield from self.following.bound(whole, node.target)
            elif isinstance(node, nodes.Return) and part.chain:
                yield Part(part.chain[-1][0], part.chain[:-1], (), whole.via)
            elif (
                isinstance(node, nodes.Call)
                and isinstance(node.func, nodes.Attribute)
                and node.func.attrname in ("append", "extend")
            ):
                yield from self.following.put(whole.at(node), node.func.expr, (ANY,))


def _needed(part: Part) -> Need:
    if "branch" in part.via:
        return "choice"
    if "added" in part.via:
        return "look"
    if "host" in part.via:
        return "host"
    if "array" in part.via:
        return "copy"
    return "bound" if "bounded" in part.via else "term"


def _is_setting(test: Node) -> bool:
    at = test.operand if isinstance(test, nodes.UnaryOp) else test
    return isinstance(at, nodes.Name | nodes.Attribute)


def _of_arms(branch: nodes.If | nodes.While) -> Iterator[Node]:
    for one in (*branch.body, *branch.orelse):
        yield from walk_scope(one)


def _changes_gradients(call: nodes.Call) -> bool:
    """``weight.grad.mul_(factor)``"""
    func = call.func
    return (
        isinstance(func, nodes.Attribute)
        and func.attrname.endswith("_")
        and dotted(func.expr).endswith(".grad")
    )
