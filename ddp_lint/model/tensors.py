"""Layer 7, tensors: whether a value lies on the device, on the host, or cannot be told.

What feeds a backward pass is on the device, whatever made it: that is how a loss is known
where the model came in through a parameter.
"""

from __future__ import annotations

from functools import cached_property

from astroid import nodes

from ddp_lint.model.backpropagated import TO_HOST, Backpropagated, says_output
from ddp_lint.model.calls import CallGraph
from ddp_lint.model.collected import Collected, starts_empty
from ddp_lint.model.contents import LOOKS_UP, Contents, Where, any_of, joined
from ddp_lint.model.counted import Counted
from ddp_lint.model.flow import bindings_for
from ddp_lint.model.given_back import GivenBack
from ddp_lint.model.modules import Binding, Unit
from ddp_lint.model.origins import (
    Api,
    Code,
    Expression,
    Folder,
    Instance,
    Member,
    Type,
)
from ddp_lint.model.roles import Roles
from ddp_lint.model.steps import HOOK_TENSORS, Steps
from ddp_lint.model.to_device import anything_moves, is_of_another_library, names_cpu, names_dtype
from ddp_lint.model.torch_api import (
    CLIPS,
    FACTORIES,
    HOST_ATTRIBUTES,
    HOST_FUNCTIONS,
    HOST_METHODS,
    HOST_MODULES,
    TENSOR_METHODS,
)
from ddp_lint.model.tree import Node, compared, dotted, elements, entries, walk

NO_CIRCLE = 10**9
DEEPEST = 120

_COMBINING = frozenset(
    {"sum", "max", "min", "abs", "list", "tuple", "sorted", "reversed", "map", "round", "pow"}
)
_CALLED_ROLES = frozenset({"module", "ddp", "fsdp", "dp", "prepared module", "engine", "prepared",
                           "lightning module", "metric"})  # fmt: skip
#: Objects that know of tensors and are none: what they are asked for may be anything.
_OBJECTS = (_CALLED_ROLES - {"prepared", "metric"}) | {
    "optimizer", "prepared optimizer", "engine optimizer", "scheduler", "own scheduler",
    "prepared scheduler", "engine scheduler", "scaler", "native scaler",
}  # fmt: skip
#: What is read by such a call is a tensor, or could not be read so.
_READS_TENSOR = frozenset({"item", "cpu", "numpy", "tolist"})
#: Attributes of a tensor that are tensors again.
_TENSOR_ATTRIBUTES = frozenset({"data", "T", "mT", "H", "mH", "real", "imag"})
#: What a tokenizer calls the words that it adds; the numbers are ``eos_token_id`` and so on.
_SPECIAL_TOKENS = frozenset(
    f"{word}_token" for word in ("eos", "bos", "pad", "unk", "sep", "cls", "mask")
)
_ON_DEVICE: tuple[Where, ...] = ("device", "moved")
_STRING_METHODS = frozenset(
    {"format", "join", "strip", "lower", "upper", "replace", "startswith", "endswith", "find",
     "encode", "decode", "batch_decode", "tokenize", "findall", "splitlines"}
)  # fmt: skip


class Tensors:
    """Where the values of one program live."""

    def __init__(self, graph: CallGraph, roles: Roles, steps: Steps) -> None:
        self.graph = graph
        self.roles = roles
        self.steps = steps
        self._where: dict[int, Where] = {}
        self._busy: dict[int, int] = {}
        self._passing: dict[int, tuple[int, Where]] = {}
        self._circle = NO_CIRCLE
        self._backpropagated = Backpropagated(graph, steps)
        self._contents = Contents(self)
        self._collected = Collected(self)
        self._given_back = GivenBack(self)
        self.counted = Counted(self)

    @cached_property
    def anything_moves(self) -> bool:
        """Whether the program may put anything on a device at all."""
        return anything_moves(self.graph, self.steps)

    def on_device(self, node: Node) -> bool:
        """Whether the value is a tensor on the device, or a collection of such."""
        where = self.where(node)
        if where == "part" and _is_used_as_tensor(node):
            where = "device"
        return where in _ON_DEVICE and self._can_be_there(node)

    def _can_be_there(self, node: Node) -> bool:
        return self.anything_moves and not is_of_another_library(self.graph.values.module_of(node))

    def on_host(self, node: Node) -> bool:
        return self.where(node) == "host"

    def feeding_backward(self, unit: Unit) -> frozenset[str]:
        """Names of ``unit`` whose values go into something that is backpropagated there."""
        return self._backpropagated.feeding(unit)

    def backpropagated(self, unit: Unit) -> frozenset[str]:
        """Names that are backpropagated themselves, or are a term of what is."""
        return self._backpropagated.terms(unit)

    def made_from_device(self, node: Node) -> bool:
        """Whether something on the device goes into the value, through calls nobody can see."""
        where = self.where(node)
        if where == "host" or not self._can_be_there(node):
            return False
        return where is not None or any(
            self.where(part) in _ON_DEVICE
            for part in walk(node)
            if isinstance(part, nodes.Name | nodes.Attribute) and not _is_called(part)
        )

    def where(self, node: Node | None) -> Where:
        if node is None:
            return None
        key = id(node)
        if key in self._where:
            return self._where[key]
        at = self._busy.get(key)
        if at is not None:
            self._circle = min(self._circle, at)
            return None
        if key in self._passing:
            # Part of a circle that is still being gone round: what is known of it so far.
            at, found = self._passing[key]
            self._circle = min(self._circle, at)
            return found
        return self._work_out(node, key)

    def _work_out(self, node: Node, key: int) -> Where:
        """Find where ``node`` is and keep the answer, unless it rests on a circle (a loop that
        feeds itself) whose first node is still being worked out."""
        around, depth = self._circle, len(self._busy)
        self._circle = NO_CIRCLE
        self._busy[key] = depth
        try:
            found = self._find(node) if depth < DEEPEST else None
        except RecursionError:
            found = None
        del self._busy[key]
        if found in _ON_DEVICE and self._is_object(node):
            found = None  # it lies there, but it is no tensor
        if self._circle >= depth:
            self._where[key] = found
            if self._circle == depth:
                self._passing.clear()
        elif found is not None:
            self._where[key] = found
        else:
            self._passing[key] = self._circle, found
            around = min(around, self._circle)
        self._circle = around
        return found

    def _is_object(self, node: Node) -> bool:
        return isinstance(node, nodes.Name | nodes.Call | nodes.Attribute) and bool(
            self.roles.of(node) & _OBJECTS
        )

    def _find(self, node: Node) -> Where:
        match node:
            case nodes.Const() | nodes.JoinedStr() | nodes.FormattedValue():
                return "host"
            case nodes.Compare():
                if any(_is_no_tensor(right) for _, right in node.ops):
                    return "host"
                if any(self._is_text(side) or _is_place(side) for side in compared(node)):
                    return "host"  # no tensor is a text, and nothing is read to tell so
                if any(op in ("is", "is not", "in", "not in") for op, _ in node.ops):
                    return "host"
                return self._computed(compared(node))
            case nodes.UnaryOp():
                return "host" if node.op == "not" else self.where(node.operand)
            case nodes.BinOp():
                if node.op == "%" and isinstance(node.left, nodes.Const | nodes.JoinedStr):
                    return "host"
                return self._computed([node.left, node.right])
            case nodes.BoolOp():
                return self._any(*node.values)
            case nodes.IfExp():
                return self._all(node.body, node.orelse)
            case nodes.AugAssign():
                return self._computed([node.target, node.value])
            case nodes.List() | nodes.Tuple() | nodes.Set():
                return self._any(*elements(node))
            case nodes.Dict():
                return self._any(*(value for _, value in entries(node)))
            case nodes.ListComp() | nodes.SetComp() | nodes.GeneratorExp():
                return self.where(node.elt)
            case nodes.DictComp():
                return self.where(node.value)
            case nodes.NamedExpr() | nodes.Starred() | nodes.Await():
                return self.where(node.value)
            case nodes.Call():
                return self._call(node)
            case nodes.Attribute():
                return self._attribute(node)
            case nodes.Subscript():
                return self._subscript(node)
            case nodes.Name() | nodes.AssignName():
                return self._name(node)
        return None

    def _any(self, *parts: Node) -> Where:
        return any_of([self.where(part) for part in parts])

    def _is_text(self, node: Node) -> bool:
        """Whether a value can only be a string."""
        if isinstance(node, nodes.Attribute) and node.attrname in _SPECIAL_TOKENS:
            return "token" in dotted(node.expr).lower()
        if not isinstance(node, nodes.Name | nodes.Attribute | nodes.JoinedStr):
            return False
        origins = self.graph.origins(node)
        return bool(origins) and all(
            isinstance(o, Expression)
            and (
                isinstance(o.node, nodes.JoinedStr)
                or isinstance(getattr(o.node, "value", None), str)
            )
            for o in origins
        )

    def _computed(self, parts: list[Node]) -> Where:
        """What is computed from these: what can be computed with is a tensor."""
        where = self._any(*parts)
        return "device" if where == "moved" else where

    def _all(self, *parts: Node) -> Where:
        found = {self.where(part) for part in parts}
        return found.pop() if len(found) == 1 else None

    # -- calls ------------------------------------------------------------------------------

    def _call(self, node: nodes.Call) -> Where:
        func = node.func
        if isinstance(func, nodes.Attribute):
            name = func.attrname
            if name in TO_HOST or name in HOST_METHODS or name in _STRING_METHODS:
                return "host"
            if name.startswith("get_last_lr"):
                return "host"
            if name in ("cuda", "parameters", "buffers"):
                return "device"
            if name == "to":
                return self._to(node, func.expr)
        entered: list[Where] = []
        for origin in self.graph.origins(func):
            match origin:
                case Api(name=called) | Folder(name=called):
                    return self._api(called, node)
                case Code(unit=unit):
                    entered.append(self._given_back.by(unit, node) or self._part_of(func))
                case Type():
                    return None
        if entered:
            # One of several functions that are handed in: a number of one is a number.
            return None if "host" in entered and len(set(entered)) > 1 else any_of(entered)
        if self._calls_module(func):
            return "device"
        return self._by_method(func, node) if isinstance(func, nodes.Attribute) else None

    def _by_method(self, func: nodes.Attribute, call: nodes.Call) -> Where:
        """What a method of something that is not the project's gives."""
        key = getattr(call.args[0], "value", None) if call.args else None
        if func.attrname in LOOKS_UP and isinstance(key, str):
            return self._contents.under(func.expr, key)
        if func.attrname == "state_dict" and self._is_optimizer(func.expr):
            return "moved"
        base = self.where(func.expr)
        if base in ("moved", "part"):
            # Only of a tensor's own methods it is known what they give.
            return "device" if func.attrname in TENSOR_METHODS else "part"
        return base

    def _part_of(self, func: Node) -> Where:
        """What a method that nobody can follow gives: a part of what was moved, at best."""
        moved = isinstance(func, nodes.Attribute) and self.where(func.expr) in ("moved", "part")
        return "part" if moved else None

    def _is_optimizer(self, node: Node) -> bool:
        return any(role.endswith("optimizer") for role in self.roles.of(node))

    def _calls_module(self, func: Node) -> bool:
        if isinstance(func, nodes.Name) and func.name == "model":
            unit = self.graph.values.unit_of(func)
            if self.steps.is_hook(unit) and func.name in unit.parameters:
                return True
        for origin in self.graph.origins(func):
            role = self.roles.role(origin)
            if role in _CALLED_ROLES and not isinstance(origin, Member):
                return True
            if (
                isinstance(origin, Member)
                and origin.name in ("forward", "module")
                and self.roles.role(origin.of) in _CALLED_ROLES
            ):
                return True
        return False

    def _to(self, node: nodes.Call, receiver: Node) -> Where:
        given = [*node.args[:1], *(k.value for k in node.keywords if k.arg == "device")]
        if not given:
            return self.where(receiver)
        target = given[0]
        if names_cpu(target):
            return "host"
        if names_dtype(target):
            return self.where(receiver)
        return "device" if self.where(receiver) == "device" else "moved"

    def _api(self, name: str, node: nodes.Call) -> Where:
        last = name.rpartition(".")[2]
        arguments = [*node.args, *(k.value for k in node.keywords)]
        if name.startswith("builtins."):
            if last in ("dict", "list", "tuple") and not arguments:
                return None
            return self._any(*arguments) if last in _COMBINING and arguments else "host"
        if name in FACTORIES:
            device = next((k.value for k in node.keywords if k.arg == "device"), None)
            if device is None:
                return "host"
            return "host" if names_cpu(device) else "device"
        if name in CLIPS:
            return "device"  # the norm of gradients
        if name in HOST_FUNCTIONS or name.startswith(("torch.cuda.", "torch.backends.")):
            return "host"
        if name.startswith(("torch.distributed.", "torch.utils.data.")):
            return None
        if name.startswith("torch."):
            return self._computed_from(arguments)
        if name.startswith(HOST_MODULES):
            return "host"
        if name.startswith(("torchmetrics.", "einops.", "accelerate.")):
            return self._computed_from(arguments)
        return None

    def _computed_from(self, arguments: list[Node]) -> Where:
        """What a function of tensors gives: what it is handed are tensors."""
        where = self._any(*arguments)
        return "device" if where in ("moved", "part") else where

    # -- names and parts --------------------------------------------------------------------

    def _attribute(self, node: nodes.Attribute) -> Where:
        if node.attrname in HOST_ATTRIBUTES or node.attrname.startswith("is_"):
            return "host"
        if node.attrname == "grad":
            return "device"
        if node.attrname == "param_groups":
            return None
        if node.attrname == "state" and self._is_optimizer(node.expr):
            return "moved"
        base = self.where(node.expr)
        if base in ("device", "moved", "part") and node.attrname not in _TENSOR_ATTRIBUTES:
            return "device" if says_output(node) else self._stored(node) or "part"
        if base is not None:
            return base
        if node.attrname in HOOK_TENSORS and isinstance(node.expr, nodes.Name):
            unit = self.graph.values.unit_of(node)
            if self.steps.is_hook(unit) and node.expr.name in unit.parameters[1:]:
                return "device"
        return self._stored(node)

    def _stored(self, node: nodes.Attribute) -> Where:
        """An attribute of an object of the project: whatever its class puts there."""
        found: list[Where] = []
        for origin in self.graph.origins(node.expr):
            if not isinstance(origin, Instance):
                return None
            made = self.counted.made(origin.cls, node.attrname)
            if made:
                # As it is made so it stays; that depends on who made it last.
                found.append(joined([self.where(call) for call in made]))
                continue
            for cls in self.graph.values.mro(origin.cls):
                for unit, binding in cls.attributes.get(node.attrname, ()):
                    found.append(self.of_binding(binding, unit))
        return any_of(found)

    def _subscript(self, node: nodes.Subscript) -> Where:
        key = node.slice.value if isinstance(node.slice, nodes.Const) else None
        if "param_groups" in dotted(_base(node)):
            return "device" if key == "params" else "host"
        if isinstance(key, str):
            return self._contents.under(node.value, key)
        if isinstance(node.slice, nodes.Const) and isinstance(node.value, nodes.Call):
            inside = self._given_back.part(node.value, (node.slice.value,))
            if inside is not None:
                return inside
        return self.where(node.value)

    def _name(self, node: nodes.Name | nodes.AssignName) -> Where:
        bindings, unit = bindings_for(node, self.graph.values.unit_of(node))
        if unit is None:
            return None
        # None says nothing of what there is on the other ways.
        bindings = [b for b in bindings if not _is_none(b)] or bindings
        found = [self.of_binding(binding, unit) for binding in bindings]
        if any(starts_empty(binding) for binding in bindings):
            found.append(self._collected.put_into(node.name, unit))
        where = joined(found)
        if where in ("device", "moved", "host"):
            return where
        if any(f in _ON_DEVICE for f in found) and all(
            f in _ON_DEVICE or _is_start_value(b) for f, b in zip(found, bindings, strict=False)
        ):
            return "device"
        if "host" not in found and self._fed_to_backward(node.name, unit, bindings):
            return "device"
        return where

    def _fed_to_backward(self, name: str, unit: Unit, bindings: list[Binding]) -> bool:
        if any(b.path == ("param",) for b in bindings):
            return name in self.backpropagated(unit)
        return name in self.feeding_backward(unit) and all(
            _computed(b) and not self._given_back.hands_back(b.value) for b in bindings
        )

    def of_binding(self, binding: Binding, unit: Unit) -> Where:
        if binding.path == ("param",):
            return self._parameter(unit, binding.name)
        if binding.value is None or binding.path == ("import",):
            return None
        if binding.path == ("aug",):
            return self.where(binding.value)
        if binding.path and binding.path[0] == "iter":
            return self._collected.element(binding.value, binding.path[1:])
        if binding.path == ("enter",):
            return None
        return (
            self._given_back.part(binding.value, binding.path)
            if binding.path
            else self.where(binding.value)
        )

    def _parameter(self, unit: Unit, name: str) -> Where:
        if name in (unit.arguments.kwarg, unit.arguments.vararg):
            return self._variadic(unit, name)
        if name in HOOK_TENSORS and self.steps.is_hook(unit):
            return "moved" if name in ("batch", "inputs") else "device"
        found: list[Where] = []
        for site in self.graph.sites_of(unit):
            given = self.graph.given(site, unit, name)
            found.append(self.where(given) if given is not None else None)
        return any_of(found)  # at least one caller passes a tensor of the device

    def _variadic(self, unit: Unit, name: str) -> Where:
        passed: list[Node] = []
        for site in self.graph.sites_of(unit):
            if site.handed:
                continue
            if unit.arguments.vararg == name:
                skip = len(unit.positional_parameters) - (1 if unit.is_method else 0)
                passed.extend(site.call.args[skip:])
            else:
                named = unit.parameters
                passed.extend(k.value for k in site.call.keywords if k.arg not in named)
        return self._any(*passed)


def _is_used_as_tensor(node: Node) -> bool:
    """Whether a method is called on it that only tensors have."""
    method = node.parent
    return (
        isinstance(method, nodes.Attribute)
        and method.attrname in TENSOR_METHODS | _READS_TENSOR
        and _is_called(method)
    )


def _is_no_tensor(node: Node) -> bool:
    """What no tensor is compared with by value: None, a string, a dict."""
    if isinstance(node, nodes.Const):
        return node.value is None or isinstance(node.value, str)
    return isinstance(node, nodes.Dict | nodes.List | nodes.Set)


def _is_place(node: Node) -> bool:
    """``images.device``, which is compared with another device."""
    return isinstance(node, nodes.Attribute) and node.attrname in ("device", "dtype")


def _is_called(node: Node) -> bool:
    return isinstance(node.parent, nodes.Call) and node.parent.func is node


def _base(node: Node) -> Node:
    at = node
    while isinstance(at, nodes.Subscript):
        at = at.value
    return at


def _is_none(binding: Binding) -> bool:
    value = binding.value
    return isinstance(value, nodes.Const) and value.value is None and not binding.path


def _is_start_value(binding: Binding) -> bool:
    """``total = 0`` before a loop that adds tensors to it."""
    return isinstance(binding.value, nodes.Const | nodes.List | nodes.Dict) and not binding.path


def _computed(binding: Binding) -> bool:
    return (
        binding.value is not None
        and binding.path[:1] not in (("iter",), ("import",), ("enter",))
        and isinstance(
            binding.value,
            nodes.Call | nodes.BinOp | nodes.UnaryOp | nodes.AugAssign | nodes.Subscript,
        )
    ) or (isinstance(binding.value, nodes.Attribute) and says_output(binding.value))
