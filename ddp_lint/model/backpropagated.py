"""Layer 7, what is backpropagated: the names of a unit whose values feed a backward pass.

Whatever feeds one is a tensor, though nobody can tell what made it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from astroid import nodes

from ddp_lint.model.calls import CallGraph
from ddp_lint.model.modules import Unit
from ddp_lint.model.origins import Api
from ddp_lint.model.passing import argument_for
from ddp_lint.model.steps import Steps
from ddp_lint.model.torch_api import HOST_METHODS
from ddp_lint.model.tree import COMPREHENSIONS, Node, dotted, elements

#: Methods that give a plain number, or an array of the host.
TO_HOST = frozenset({"item", "tolist", "numpy", "cpu"})
#: Methods whose result is made of their receiver: the receiver feeds what the result feeds.
_TENSOR_METHODS = frozenset(
    {"mean", "sum", "view", "reshape", "squeeze", "unsqueeze", "flatten", "detach", "clone",
     "float", "half", "bfloat16", "double", "to", "cuda", "contiguous", "transpose", "permute",
     "add", "sub", "mul", "div", "pow", "sqrt", "exp", "log", "abs", "neg", "max", "min",
     "softmax", "log_softmax", "logits", "masked_fill", "expand", "repeat", "chunk", "split",
     "type_as", "norm", "clamp", "scale", "t"}
)  # fmt: skip
_OUTPUT_PARTS = frozenset(
    {"data", "T", "sample", "last_hidden_state", "pooler_output", "hidden_states", "prediction",
     "values"}
)  # fmt: skip
#: Whose arguments say where a value goes, and keywords that do.
_MOVING = frozenset({"to", "cuda", "type"})
_PLACES = frozenset({"device", "dtype"})
#: What functions are called through, and no tensor.
_NAMESPACES = frozenset({"torch", "F", "nn", "np", "math", "self"})


class Backpropagated:
    """What goes into the backward passes of one program."""

    def __init__(self, graph: CallGraph, steps: Steps) -> None:
        self.graph = graph
        self.steps = steps
        self._fed: dict[int, tuple[frozenset[str], frozenset[str]]] = {}

    def feeding(self, unit: Unit) -> frozenset[str]:
        """Names of ``unit`` whose values go into something that is backpropagated there."""
        return self._names(unit)[1]

    def terms(self, unit: Unit) -> frozenset[str]:
        """Names that are backpropagated themselves, or are a term of what is."""
        return self._names(unit)[0]

    def _names(self, unit: Unit) -> tuple[frozenset[str], frozenset[str]]:
        known = self._fed.get(id(unit))
        if known is not None:
            return known
        self._fed[id(unit)] = (frozenset(), frozenset())
        todo: list[str] = []
        for call in unit.calls:
            if self.steps.is_backward(call):
                todo.extend(_operands(loss_of(call), _enters_none))
            else:
                todo.extend(self._handed_to_backward(call))
        direct = self._closed(unit, todo, _enters_none)
        every = self._closed(unit, list(direct), self._computes)
        self._fed[id(unit)] = (direct, every)
        return direct, every

    def _computes(self, call: nodes.Call) -> bool:
        """Whether a call computes with its arguments on the device: a module, a function of
        torch, something unseen.  What functions of the project do with them can be seen."""
        units = self.graph.targets_of(call)
        if units:
            return all(unit.name in ("forward", "__call__") for unit in units)
        if getattr(call.func, "attrname", "") in HOST_METHODS:
            return False
        return not any(
            isinstance(o, Api)
            and (not o.name.startswith("torch.") or o.name.rpartition(".")[2][:1].isupper())
            for o in self.graph.values.of(call.func)
        )

    def _closed(
        self, unit: Unit, todo: list[str], enters: Callable[[nodes.Call], bool]
    ) -> frozenset[str]:
        found: set[str] = set()
        while todo:
            name = todo.pop()
            if name in found:
                continue
            found.add(name)
            for binding in unit.bindings.get(name, ()):
                value = binding.value
                if value is None or binding.path in (("param",), ("import",), ("enter",)):
                    continue
                if binding.path[:1] == ("iter",):
                    continue
                if isinstance(value, nodes.AugAssign):
                    if value.op in ("/=", "*="):
                        continue  # a factor
                    value = value.value
                todo.extend(_operands(value, enters))
        return frozenset(found)

    def _handed_to_backward(self, call: nodes.Call) -> Iterator[str]:
        for target in self.graph.targets_of(call):
            if not target.is_function or not self.steps.reaches_backward(target):
                continue
            for name in self.terms(target) & set(target.parameters):
                given = argument_for(call, target, name)
                if isinstance(given, nodes.Name):
                    yield given.name


def loss_of(call: nodes.Call) -> Node:
    """The expression that a backward call backpropagates: ``loss`` in
    ``scaler.scale(loss).backward()``.
    """
    func = call.func
    if isinstance(func, nodes.Attribute) and func.attrname == "backward" and not call.args:
        receiver = func.expr
        if (
            isinstance(receiver, nodes.Call)
            and isinstance(receiver.func, nodes.Attribute)
            and receiver.func.attrname == "scale"
            and receiver.args
        ):
            return receiver.args[0]
        return receiver
    if isinstance(func, nodes.Attribute) and call.args:
        receiver_name = dotted(func.expr).rpartition(".")[2]
        if func.attrname == "manual_backward" or not receiver_name.startswith("loss"):
            return call.args[0]
    return func.expr if isinstance(func, nodes.Attribute) else call


def _operands(node: Node, enters: Callable[[nodes.Call], bool]) -> Iterator[str]:
    """Names whose values go into ``node``, leaving out what is merely called or indexed by.

    Of the arguments of a call that ``enters`` lets through only plain names count:
    ``net(x, args.size)`` says that ``x`` goes into it, and nothing about ``args``.
    """
    stack: list[Node] = [node]
    while stack:
        at = stack.pop()
        if isinstance(at, nodes.Name):
            yield at.name
        elif isinstance(at, nodes.Call):
            if isinstance(at.func, nodes.Attribute) and not _is_api(at.func):
                if at.func.attrname in TO_HOST:
                    continue
                if not isinstance(at.func.expr, nodes.Name) or at.func.attrname in _TENSOR_METHODS:
                    stack.append(at.func.expr)
            if enters(at) and getattr(at.func, "attrname", "") not in _MOVING:
                given = [*at.args, *(k.value for k in at.keywords if k.arg not in _PLACES)]
                stack.extend(a for a in given if not isinstance(a, nodes.Attribute))
        elif isinstance(at, nodes.Subscript | nodes.Starred):
            stack.append(at.value)
        elif isinstance(at, nodes.Attribute) and says_output(at):
            stack.append(at.expr)
        elif isinstance(at, nodes.BinOp):
            stack.extend(_terms(at))
        elif isinstance(at, nodes.UnaryOp):
            stack.append(at.operand)
        elif isinstance(at, nodes.IfExp):
            stack.extend((at.body, at.orelse))
        elif isinstance(at, nodes.List | nodes.Tuple):
            stack.extend(elements(at))
        elif isinstance(at, COMPREHENSIONS):
            stack.extend(g.iter for g in at.generators)


def _terms(node: nodes.BinOp) -> list[Node]:
    """The sides of an operation that are tensors: of a product the one that is a loss, where
    only one is called so; what something is divided by is a number more often than not."""
    if node.op in ("/", "//"):
        return [node.left]
    if node.op == "*":
        losses = [side for side in (node.left, node.right) if "loss" in _last_name(side)]
        if len(losses) == 1:
            return losses
    return [node.left, node.right]


def _last_name(node: Node) -> str:
    """The last name in an expression, for a hint: "loss" of ``self.loss`` and ``loss_fn(x)``."""
    at = node.func if isinstance(node, nodes.Call) else node
    return str(getattr(at, "attrname", getattr(at, "name", "")) or "").lower()


def _enters_none(call: nodes.Call) -> bool:
    return False


def says_output(node: nodes.Attribute) -> bool:
    """``outputs.loss``, ``result.logits``: a part of what a model gave.  ``args.weight`` and
    ``self.alpha`` are factors, and say nothing about ``args``."""
    name = str(node.attrname)
    return name in _OUTPUT_PARTS or name.endswith(("loss", "losses", "logits"))


def _is_api(node: nodes.Attribute) -> bool:
    return isinstance(node.expr, nodes.Name) and node.expr.name in _NAMESPACES
