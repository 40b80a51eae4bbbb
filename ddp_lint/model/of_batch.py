"""Layer 9, of the batch: values that the host could compute before the batch is moved.

They are made of the batch of a loop alone, and of nothing that the model gives.
"""

from __future__ import annotations

from astroid import nodes

from ddp_lint.model.facts import Facts
from ddp_lint.model.flow import bindings_for
from ddp_lint.model.modules import Binding, Unit
from ddp_lint.model.passing import argument_for
from ddp_lint.model.steps import DEEPEST_CALL, StepLoop
from ddp_lint.model.tree import Node, compared, elements, is_within

Chain = tuple[tuple[nodes.Call, Unit], ...]


class OfBatch:
    """What is made of the batch in one iteration of ``loop``."""

    def __init__(self, facts: Facts, loop: StepLoop) -> None:
        self.facts = facts
        self.loop = loop
        self._busy: set[int] = set()

    def holds(self, node: Node | None, chain: Chain) -> bool:
        """Whether ``node``, which the calls of ``chain`` lead to, is made of the batch alone."""
        if node is None:
            return False
        if id(node) in self._busy:
            return True  # ``x = x[1:]`` in a loop: as the others say
        self._busy.add(id(node))
        try:
            return self._is_made_of_it(node, chain)
        finally:
            self._busy.discard(id(node))

    def _all(self, parts: list[Node], chain: Chain) -> bool:
        """Numbers that stand in the text come from nowhere."""
        told = [part for part in parts if not isinstance(part, nodes.Const)]
        return bool(told) and all(self.holds(part, chain) for part in told)

    def _is_made_of_it(self, node: Node, chain: Chain) -> bool:
        match node:
            case nodes.Name():
                return self._name(node, chain)
            case nodes.Attribute():
                return self.holds(node.expr, chain)
            case nodes.Subscript() | nodes.Starred():
                return self.holds(node.value, chain)
            case nodes.UnaryOp():
                return self.holds(node.operand, chain)
            case nodes.BinOp():
                return self._all([node.left, node.right], chain)
            case nodes.Compare():
                return self._all(compared(node), chain)
            case nodes.Tuple() | nodes.List():
                return self._all(elements(node), chain)
            case nodes.ListComp() | nodes.GeneratorExp():
                return self.holds(node.elt, chain)
            case nodes.Call():
                return self._call(node, chain, ())
        return False

    def _call(self, call: nodes.Call, chain: Chain, path: tuple[int | str, ...]) -> bool:
        names = self.facts.names(call)
        if "builtins.next" in names:
            return True
        if any(name.startswith(("torch.", "builtins.")) for name in names):
            return self._all(list(call.args[:1]), chain)
        entered = [unit for unit in self.facts.graph.targets_of(call) if unit.is_function]
        if not entered:
            # A method of a tensor; an object that is called is a model.
            func = call.func
            return isinstance(func, nodes.Attribute) and self.holds(func.expr, chain)
        if len(chain) >= DEEPEST_CALL or any(unit.name == "forward" for unit in entered):
            return False
        inner = (*chain, (call, self.facts.values.unit_of(call)))
        given = [_at(value, path) for unit in entered for value in unit.returned]
        return bool(given) and all(self.holds(value, inner) for value in given)

    def _name(self, name: nodes.Name, chain: Chain) -> bool:
        bindings, unit = bindings_for(name, self.facts.values.unit_of(name))
        return (
            unit is not None
            and bool(bindings)
            and all(self._binding(binding, unit, chain) for binding in bindings)
        )

    def _binding(self, binding: Binding, unit: Unit, chain: Chain) -> bool:
        loop, value = self.loop.node, binding.value
        if isinstance(loop, nodes.For) and is_within(binding.node, loop.target):
            return True
        if binding.path == ("param",):
            if chain:
                return self.holds(argument_for(chain[-1][0], unit, binding.name), chain[:-1])
            return self.loop.is_hook and unit is self.loop.unit and binding.name != unit.self_name
        if isinstance(value, nodes.AugAssign):
            return self.holds(value.value, chain)
        if isinstance(value, nodes.Call):
            return self._call(value, chain, binding.path)
        return self.holds(_at(value, binding.path), chain)


def _at(value: Node | None, path: tuple[int | str, ...]) -> Node | None:
    """The element of a tuple as it is written; all of it, where it is no tuple."""
    index = path[0] if path else None
    if isinstance(value, nodes.Tuple) and isinstance(index, int):
        display = elements(value)
        return display[index] if -len(display) <= index < len(display) else None
    return value
