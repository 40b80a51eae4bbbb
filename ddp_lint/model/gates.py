"""Layer 8, gates: what a condition inside a step loop decides on.

``step % 100 == 0`` lets some steps through; ``if self.use_amp`` is the same on every step;
``if loss > limit`` depends on data.  Only the second kind leaves "on every step" true.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from astroid import nodes

from ddp_lint.model.counters import asks_for_the_step, bound, stores
from ddp_lint.model.flow import bindings_for
from ddp_lint.model.modules import Binding, Unit
from ddp_lint.model.steps import StepLoop
from ddp_lint.model.tree import Node, ancestors, dotted, is_within, statement, walk

if TYPE_CHECKING:
    from ddp_lint.model.facts import Facts

Kind = Literal["rank", "gate", "data", "flag"]

_CLOCKS = ("time.time", "time.perf_counter", "time.monotonic", "datetime.now", "timer")
_GATE_ATTRIBUTES = frozenset(
    {"sync_gradients", "is_gradient_accumulation_boundary", "should_log", "should_step", "do_sync",
     "is_logging_step", "should_save", "should_evaluate", "is_last_step", "is_boundary",
     "should_sync", "should_run", "every", "every_n", "should_stop", "every_n_train_iters",
     "every_n_iters", "every_n_inner_iters", "every_n_epochs", "is_last_train_iter",
     "end_of_epoch"}
)  # fmt: skip
#: What a flag may be computed by: its own value may ask which step it is.
_COMPUTED = (nodes.Compare, nodes.BoolOp, nodes.UnaryOp, nodes.Call, nodes.BinOp)
_DEEPEST = 4
_IDENTITY = frozenset({"isinstance", "hasattr", "callable", "torch.is_tensor"})
_LOOKING = re.compile(
    r"debug|verbose|profil|benchmark|timing|time_|trace|wall_?clock|breakdown|sync", re.I
)
_ORDINARY = re.compile(
    r"amp|fp16|bf16|half|dist|ddp|cuda|gpu|wandb|track|log|tensorboard|multi", re.I
)


def kind_of_test(facts: Facts, test: Node, loop: StepLoop | None) -> Kind:
    if _is_gate(facts, test, loop, 0):
        return "gate"
    if facts.guards.depends_on_rank(test):
        return "rank"
    if _depends_on_data(facts, test, loop, 0):
        return "data"
    return "flag"


def _is_gate(facts: Facts, test: Node, loop: StepLoop | None, depth: int) -> bool:
    if depth > _DEEPEST:
        return False
    for node in walk(test):
        if isinstance(node, nodes.BinOp) and node.op == "%":
            is_text = isinstance(node.left, nodes.Const | nodes.JoinedStr)
            if not is_text and not facts.guards.depends_on_rank(test):
                return True
        elif isinstance(node, nodes.Call):
            if dotted(node.func).endswith(_CLOCKS):
                return True
            if dotted(node.func).rpartition(".")[2] in _GATE_ATTRIBUTES:
                return True
            for unit in facts.graph.targets_of(node):
                if any(_is_gate(facts, value, None, depth + 1) for value in unit.returned):
                    return True
        elif isinstance(node, nodes.Compare):
            if loop is not None and asks_for_the_step(facts, node, loop):
                return True
        elif isinstance(node, nodes.Attribute) and node.attrname in _GATE_ATTRIBUTES:
            return True
        if isinstance(node, nodes.Name | nodes.Attribute) and not _is_callee(node):
            for binding in _bindings(facts, node):
                value = binding.value
                if (
                    binding.path == ()
                    and isinstance(value, _COMPUTED)
                    and value is not test
                    and _is_gate(facts, value, loop, depth + 1)
                ):
                    return True
    return False


def _depends_on_data(facts: Facts, test: Node, loop: StepLoop | None, depth: int) -> bool:
    """Whether something that changes within the loop decides."""
    if loop is None or depth > _DEEPEST:
        return False
    for node in walk(test):
        if isinstance(node, nodes.Name) and not _is_callee(node):
            if facts.tensors.on_device(node) and not _only_identity(node):
                return True
            for binding in _bindings(facts, node):
                if is_within(binding.node, loop.node) and binding.path != ("param",):
                    if binding.path and binding.path[0] != "aug":
                        if not _only_identity(node):
                            return True
                    elif binding.value is None or not _is_setting(
                        facts, binding.value, loop, depth
                    ):
                        return True
        elif isinstance(node, nodes.Attribute) and _is_flipped(facts, node, loop):
            return True
    return False


def _is_flipped(facts: Facts, node: nodes.Attribute, loop: StepLoop) -> bool:
    """``self.first``, a flag that the iteration itself sets."""
    return any(
        binding.path == ()
        and isinstance(binding.value, nodes.Const)
        and id(statement(binding.node)) in loop.stores
        for binding, _ in stores(facts, node)
    )


def _is_setting(facts: Facts, value: Node, loop: StepLoop, depth: int) -> bool:
    if isinstance(value, nodes.Const):
        return False  # a flag that the loop itself sets
    return not _depends_on_data(facts, value, loop, depth + 1) and not isinstance(
        value, nodes.AugAssign
    )


def _only_identity(name: nodes.Name) -> bool:
    """``x is not None``, ``isinstance(x, ...)``, ``len(x)``: what it is, not what it holds."""
    parent = name.parent
    if isinstance(parent, nodes.Compare):
        return all(op in ("is", "is not") for op, _ in parent.ops)
    return isinstance(parent, nodes.Call) and dotted(parent.func) in _IDENTITY


def _bindings(facts: Facts, node: Node) -> list[Binding]:
    if not isinstance(node, nodes.Name):
        return []
    return bindings_for(node, facts.values.unit_of(node))[0]


def is_switch(facts: Facts, test: Node, holds: bool = True) -> bool:
    """Whether a test comes out so only where somebody has turned on a setting that is off
    otherwise, mostly to look into a run.

    Known by its name (debug, profile, timing), by ``action="store_true"`` or by a default of
    False.
    """
    if _LOOKING.search(test.as_string()):
        return True
    for node in walk(test):
        if not isinstance(node, nodes.Name | nodes.Attribute) or _asks_for_on(node, test) != holds:
            continue
        if isinstance(node, nodes.Attribute) and node.attrname in facts.store_true_options:
            return not _is_ordinary(node.attrname)
        for name in _off_by_default(facts, node):
            return not _is_ordinary(name)
    return False


def _asks_for_on(node: Node, test: Node) -> bool:
    """False below ``not``, where the test asks for what is switched off."""
    below = 0
    for child, parent in ancestors(node):
        if child is test:
            break
        below += isinstance(parent, nodes.UnaryOp) and parent.op == "not"
    return below % 2 == 0


def _off_by_default(facts: Facts, node: nodes.Name | nodes.Attribute) -> Iterator[str]:
    """The parameters with a default of False that a name stands for, or that an attribute
    keeps; not those that a caller of the project has switched on for good."""
    for binding, unit in bound(facts, node):
        if binding.path == ("param",):
            default = unit.default_of(binding.name)
            off = isinstance(default, nodes.Const) and default.value is False
            if off and not _is_turned_on(facts, unit, binding.name):
                yield binding.name
        elif (
            isinstance(node, nodes.Attribute)
            and binding.path == ()
            and isinstance(binding.value, nodes.Name)
        ):
            yield from _off_by_default(facts, binding.value)


def _is_turned_on(facts: Facts, unit: Unit, name: str) -> bool:
    given = (facts.graph.given(site, unit, name) for site in facts.graph.sites_of(unit))
    return any(isinstance(value, nodes.Const) and value.value is True for value in given)


def _is_ordinary(name: str) -> bool:
    """Settings that a training run has on as a matter of course."""
    return _ORDINARY.search(name) is not None


def _is_callee(node: Node) -> bool:
    return isinstance(node.parent, nodes.Call) and node.parent.func is node
