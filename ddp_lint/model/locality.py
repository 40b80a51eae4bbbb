"""Layer 12, locality: whether a value is one rank's own, or the same on all of them.

A batch as it was loaded is "batch", what is computed from it by the model "local".
"reduced" is "equal" by what was done to it: where one binding of a name is reduced and another
is not, the other is that of a program without other ranks.

A loss before it is reduced, a batch, a clock are a rank's own.  What a collective gave back,
gradients after the backward pass, counters and settings are the same everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

from astroid import nodes

from ddp_lint.model.backpropagated import loss_of
from ddp_lint.model.collectives import Collectives
from ddp_lint.model.facts import Facts
from ddp_lint.model.feeding import happening_in, without_gradients
from ddp_lint.model.flow import reaching
from ddp_lint.model.frames import Frame, origins_in, resolve
from ddp_lint.model.modules import Binding, Unit
from ddp_lint.model.torch_api import CLIPS, COLLECTIVES
from ddp_lint.model.tree import Node, dotted, elements, entries, position, walk

Local = Literal["local", "batch", "equal", "reduced"] | None

_CLOCKS = frozenset({"time.time", "time.perf_counter", "time.monotonic", "time.process_time"})
_SAME = frozenset({"builtins.len", "builtins.isinstance", "builtins.hasattr", "builtins.range"})
_SAME_METHODS = frozenset(
    {"size", "dim", "numel", "nelement", "keys", "get_scale", "parameters", "named_parameters",
     "is_enabled", "state_dict", "get_last_lr"}
)  # fmt: skip
_SAME_ATTRIBUTES = frozenset(
    {"shape", "dtype", "device", "grad", "ndim", "requires_grad", "is_cuda", "grad_fn"}
)
_PASSING = ("torch.", "math.", "numpy.", "builtins.")
_MODULES = frozenset({"module", "ddp", "dp", "fsdp", "prepared module", "engine",
                      "lightning module"})  # fmt: skip
#: What all ranks keep in step: they see the same gradients and count the same steps.
_KEPT_EQUAL = _MODULES | {"optimizer", "scheduler", "own scheduler", "scaler", "native scaler",
                          "ema", "prepared optimizer", "engine optimizer"}  # fmt: skip
_LOADERS = frozenset({"loader", "prepared loader", "engine loader"})
#: What a helper outside the project is called that makes a value equal on all ranks.
_REDUCING = re.compile(r"reduce|gather|broadcast|sync|average_over|mean_over|all_ranks", re.I)
_SENT_BY_WRAPPERS = frozenset(
    {None, "all-reduce of gradients", "broadcast of buffers", "wrapping"}
)
_OWN: tuple[Local, ...] = ("local", "batch")
_DEEPEST = 30


class Locality:
    """Answers for the values of one program."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.sending = facts.once(Collectives)
        self._reducing: dict[int, bool] = {}
        self._frames: dict[tuple[int, int, int], Frame] = {}
        self._known: dict[tuple[int, int], tuple[Frame, Local]] = {}

    def of(self, node: Node | None, frame: Frame, depth: int = 0) -> Local:
        """Remembered for each way to a node: values are made of each other in circles."""
        if node is None or depth > _DEEPEST:
            return None
        known = self._known.get((id(node), id(frame)))
        if known is None:
            self._known[id(node), id(frame)] = frame, None
            known = self._known[id(node), id(frame)] = frame, self._of(node, frame, depth)
        return known[1]

    def _of(self, node: Node, frame: Frame, depth: int) -> Local:
        match node:
            case nodes.Const() | nodes.JoinedStr() | nodes.Lambda():
                return "equal"
            case nodes.Compare():
                if any(op in ("is", "is not", "in", "not in") for op, _ in node.ops):
                    return None
                return self._any([node.left, *(right for _, right in node.ops)], frame, depth)
            case nodes.BoolOp():
                return self._any(node.values, frame, depth)
            case nodes.BinOp():
                return self._any([node.left, node.right], frame, depth)
            case nodes.UnaryOp():
                return self.of(node.operand, frame, depth + 1)
            case nodes.IfExp():
                return self._any([node.body, node.orelse], frame, depth)
            case nodes.NamedExpr() | nodes.Starred() | nodes.Await():
                return self.of(node.value, frame, depth + 1)
            case nodes.AugAssign():
                return self._any([node.value], frame, depth)
            case nodes.Subscript():
                return self.of(node.value, frame, depth + 1)
            case nodes.Tuple() | nodes.List():
                return self._any(elements(node), frame, depth)
            case nodes.Dict():
                return self._any([value for _, value in entries(node)], frame, depth)
            case nodes.DictComp():
                return self.of(node.value, frame, depth + 1)
            case nodes.ListComp() | nodes.GeneratorExp() | nodes.SetComp():
                return self.of(node.elt, frame, depth + 1)
            case nodes.Call():
                return self._call(node, frame, depth)
            case nodes.Attribute():
                if self._roles(node, frame) & _KEPT_EQUAL:
                    return "equal"
                if node.attrname in _SAME_ATTRIBUTES:
                    return "reduced" if node.attrname == "grad" else "equal"
                return self.of(node.expr, frame, depth + 1)
            case nodes.Name():
                return self._name(node, frame, depth)
        return None

    def _any(self, parts: Iterable[Node], frame: Frame, depth: int) -> Local:
        found = [self.of(part, frame, depth + 1) for part in parts]
        for own in _OWN:
            if own in found:
                return own
        if found and all(found):
            return "reduced" if "reduced" in found else "equal"
        return None

    # -- calls ------------------------------------------------------------------------------

    def _call(
        self, call: nodes.Call, frame: Frame, depth: int, part: int | str | None = None
    ) -> Local:
        names = self.facts.names(call)
        if names & (COLLECTIVES | CLIPS):
            return "reduced"
        if names & _SAME:
            return "equal"
        if names & _CLOCKS:
            return "local"
        given = [*call.args, *(keyword.value for keyword in call.keywords)]
        targets = [t for t in self.facts.graph.targets_of(call) if t.is_function]
        called = dotted(call.func).rpartition(".")[2] or getattr(call.func, "attrname", "")
        if targets and all(target.name not in ("forward", "__init__") for target in targets):
            if any(self._may_reduce(target) for target in targets):
                return "reduced"
            return _joined(
                [
                    self.of(_chosen(value, part), self._inside(target, call, frame), depth + 1)
                    for target in targets
                    if not frame.enters(target)
                    for statement in target.returns
                    for value in [
                        statement.value if isinstance(statement, nodes.Return) else statement
                    ]
                ]
            )
        if _REDUCING.search(called):
            return "reduced"
        if any(name.startswith(_PASSING) for name in names):
            if any(name.startswith("torch.distributed.") for name in names):
                return None
            return self._any(given, frame, depth) if given else "equal"
        if self._is_forward(call.func, frame):
            # Without gradients it evaluates, and all may go through the same data.
            return None if without_gradients(self.facts, happening_in(call, frame)) else "local"
        if isinstance(call.func, nodes.Attribute):
            if call.func.attrname in _SAME_METHODS:
                return "equal"
            return self.of(call.func.expr, frame, depth + 1)
        return None

    def _inside(self, unit: Unit, call: nodes.Call, caller: Frame) -> Frame:
        which = id(unit), id(call), id(caller)
        if which not in self._frames:
            self._frames[which] = Frame(unit, call=call, caller=caller)
        return self._frames[which]

    def _may_reduce(self, unit: Unit) -> bool:
        """Whether a function may make a value equal on all ranks: it sends something else than
        what a wrapper sends on its own, which are gradients and buffers."""
        known = self._reducing.get(id(unit))
        if known is None:
            self._reducing[id(unit)] = False
            known = self._reducing[id(unit)] = any(
                bool(self.facts.names(call) & COLLECTIVES)
                or self.sending.direct(call) not in _SENT_BY_WRAPPERS
                or any(self._may_reduce(target) for target in self.facts.graph.targets_of(call))
                for call in unit.calls
            )
        return known

    def _roles(self, node: Node, frame: Frame) -> set[str]:
        origins = origins_in(self.facts.graph, node, frame)
        return {self.facts.roles.role(origin) for origin in origins}

    def _is_forward(self, func: Node, frame: Frame) -> bool:
        return bool(self._roles(func, frame) & _MODULES)

    # -- names ------------------------------------------------------------------------------

    def _name(self, node: nodes.Name, frame: Frame, depth: int) -> Local:
        if self._was_sent(node):
            return "reduced"
        written = resolve(node, frame)
        if written.node is not node:
            return self.of(written.node, written.frame, depth + 1)
        if self._roles(node, frame) & _KEPT_EQUAL:
            return "equal"
        unit = frame.unit
        if node.name not in unit.bindings:
            return None
        found = [self._bound(binding, frame, depth) for binding in reaching(unit, node.name, node)]
        joined = _joined(found)
        if joined is None and self._is_backpropagated(node):
            return "local"
        return joined

    def _is_backpropagated(self, node: nodes.Name) -> bool:
        """A loss that nothing is known of is this rank's own."""
        unit = self.facts.values.unit_of(node)
        if any(binding.path[:1] == ("param",) for binding in unit.bindings[node.name]):
            return False
        return any(
            isinstance(name, nodes.Name) and name.name == node.name
            for call in unit.calls
            if self.facts.steps.is_backward(call)
            for name in walk(loss_of(call))
        )

    def _bound(self, binding: Binding, frame: Frame, depth: int) -> Local:
        path, value = binding.path, binding.value
        if value is None or path[:1] in (("param",), ("import",), ("enter",)):
            return None
        if path[:1] == ("iter",):
            return self._iterated(value, path[1:], binding, frame, depth)
        if len(path) == 1 and isinstance(value, nodes.Call):
            return self._call(value, frame, depth + 1, path[0])
        return self.of(value, frame, depth + 1)

    def _iterated(
        self,
        iterable: Node,
        path: tuple[int | str, ...],
        binding: Binding,
        frame: Frame,
        depth: int,
    ) -> Local:
        if isinstance(iterable, nodes.Call):
            name = dotted(iterable.func).rpartition(".")[2]
            if name in ("range", "trange", "count"):
                return "equal"
            if name == "enumerate" and iterable.args and path:
                if path[0] == 0:
                    return "equal"
                return self._iterated(iterable.args[0], path[1:], binding, frame, depth)
            if name in ("tqdm", "iter", "islice") and iterable.args:
                return self._iterated(iterable.args[0], path, binding, frame, depth)
        written = resolve(iterable, frame)
        if self._roles(written.node, written.frame) & _LOADERS:
            return "batch"
        return self.of(iterable, frame, depth + 1)

    def _was_sent(self, node: nodes.Name) -> bool:
        """Whether a collective has been called on the name before it is read here."""
        unit = self.facts.values.unit_of(node)
        for call in unit.calls:
            if not call.args or position(call) >= position(node):
                continue
            first = call.args[0]
            if isinstance(first, nodes.Attribute) and first.attrname == "data":
                first = first.expr
            if not isinstance(first, nodes.Name) or first.name != node.name:
                continue
            if self.facts.names(call) & COLLECTIVES:
                return True
            if isinstance(call.parent, nodes.Expr) and any(
                self.sending.may_reach(target) for target in self.facts.graph.targets_of(call)
            ):
                return True
        return False


def _chosen(value: Node | None, part: int | str | None) -> Node | None:
    """One part of what a function returns, where it returns several."""
    if isinstance(value, nodes.Tuple) and isinstance(part, int):
        parts = elements(value)
        whole = not any(isinstance(one, nodes.Starred) for one in parts)
        return parts[part] if whole and part < len(parts) else value
    return value


def _joined(found: list[Local]) -> Local:
    """What several ways to one value come to."""
    if "reduced" in found:
        return "reduced"
    for own in _OWN:
        if own in found:
            return own
    return "equal" if found and None not in found else None
