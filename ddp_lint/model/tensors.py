"""Layer 7, tensors: whether a value lies on the device, on the host, or cannot be told.

What feeds a backward pass is on the device, whatever made it: that is how a loss is known
where the model came in through a parameter.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Literal

from astroid import nodes

from ddp_lint.model.backpropagated import TO_HOST, Backpropagated, says_output
from ddp_lint.model.calls import CallGraph
from ddp_lint.model.flow import reaching
from ddp_lint.model.modules import Binding, Unit
from ddp_lint.model.origins import (
    Api,
    Code,
    Folder,
    Instance,
    Member,
    Type,
)
from ddp_lint.model.roles import Roles
from ddp_lint.model.steps import HOOK_TENSORS, Steps
from ddp_lint.model.to_device import anything_moves, names_cpu
from ddp_lint.model.torch_api import (
    CLIPS,
    FACTORIES,
    HOST_ATTRIBUTES,
    HOST_FUNCTIONS,
    HOST_METHODS,
    HOST_MODULES,
)
from ddp_lint.model.tree import Node, compared, dotted, elements, entries, walk

Where = Literal["device", "host"] | None

NO_CIRCLE = 10**9
DEEPEST = 120

_COMBINING = frozenset(
    {"sum", "max", "min", "abs", "list", "tuple", "sorted", "reversed", "map", "round", "pow"}
)
_CALLED_ROLES = frozenset({"module", "ddp", "fsdp", "dp", "prepared module", "engine", "prepared",
                           "lightning module", "metric"})  # fmt: skip
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

    @cached_property
    def anything_moves(self) -> bool:
        """Whether the program may put anything on a device at all."""
        return anything_moves(self.graph, self.steps)

    def on_device(self, node: Node) -> bool:
        return self.where(node) == "device" and self.anything_moves

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
        if self.where(node) == "host" or not self.anything_moves:
            return False
        return self.where(node) == "device" or any(
            self.where(part) == "device"
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
        if found == "device" and self._is_module(node):
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

    def _is_module(self, node: Node) -> bool:
        return isinstance(node, nodes.Name | nodes.Call | nodes.Attribute) and bool(
            self.roles.of(node) & (_CALLED_ROLES - {"prepared", "metric"})
        )

    def _find(self, node: Node) -> Where:
        match node:
            case nodes.Const() | nodes.JoinedStr() | nodes.FormattedValue():
                return "host"
            case nodes.Compare():
                if any(_is_no_tensor(right) for _, right in node.ops):
                    return "host"
                if any(op in ("is", "is not", "in", "not in") for op, _ in node.ops):
                    return "host"
                return self._any(*compared(node))
            case nodes.UnaryOp():
                return "host" if node.op == "not" else self.where(node.operand)
            case nodes.BinOp():
                if node.op == "%" and isinstance(node.left, nodes.Const | nodes.JoinedStr):
                    return "host"
                return self._any(node.left, node.right)
            case nodes.BoolOp():
                return self._any(*node.values)
            case nodes.IfExp():
                return self._all(node.body, node.orelse)
            case nodes.AugAssign():
                return self._any(node.target, node.value)
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
                return "host" if "param_groups" in dotted(_base(node)) else self._subscript(node)
            case nodes.Name() | nodes.AssignName():
                return self._name(node)
        return None

    def _any(self, *parts: Node) -> Where:
        found = [self.where(part) for part in parts]
        if "device" in found:
            return "device"
        return "host" if found and all(f == "host" for f in found) else None

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
        for origin in self.graph.origins(func):
            match origin:
                case Api(name=called) | Folder(name=called):
                    return self._api(called, node)
                case Code(unit=unit):
                    return self._returned(unit)
                case Type():
                    return None
        if self._calls_module(func):
            return "device"
        if isinstance(func, nodes.Attribute):
            return self.where(func.expr)
        return None

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
        text = dotted(target)
        if text.startswith("torch.") and not text.startswith("torch.device"):
            return self.where(receiver)  # a dtype
        if names_cpu(target):
            return "host"
        if text.rpartition(".")[2] in ("dtype", "weight_dtype"):
            return self.where(receiver)
        return "device"

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
            return self._any(*arguments) if arguments else None
        if name.startswith(HOST_MODULES):
            return "host"
        if arguments and name.startswith(("torchmetrics.", "einops.", "accelerate.")):
            return self._any(*arguments)
        return None

    def _returned(self, unit: Unit) -> Where:
        key = id(unit.node)
        if key in self._busy:
            return None
        values = [s.value if isinstance(s, nodes.Return) else s for s in unit.returns]
        found = [self.where(v) for v in values if v is not None]
        if not found:
            return None
        if "device" in found and "host" not in found:
            return "device"
        return "host" if all(f == "host" for f in found) else None

    # -- names and parts --------------------------------------------------------------------

    def _attribute(self, node: nodes.Attribute) -> Where:
        if node.attrname in HOST_ATTRIBUTES or node.attrname.startswith("is_"):
            return "host"
        if node.attrname == "grad":
            return "device"
        base = self.where(node.expr)
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
            for cls in self.graph.values.mro(origin.cls):
                for unit, binding in cls.attributes.get(node.attrname, ()):
                    found.append(self._binding(binding, unit))
        if "device" in found:
            return "device"
        return "host" if found and all(f == "host" for f in found) else None

    def _subscript(self, node: nodes.Subscript) -> Where:
        if isinstance(node.slice, nodes.Const) and isinstance(node.value, nodes.Call):
            inside = self._part(node.value, (node.slice.value,))
            if inside is not None:
                return inside
        return self.where(node.value)

    def _name(self, node: nodes.Name | nodes.AssignName) -> Where:
        unit: Unit | None = self.graph.values.unit_of(node)
        first = unit
        while unit is not None and node.name not in unit.bindings:
            unit = unit.outer
        if unit is None:
            return None
        bindings = reaching(unit, node.name, node) if unit is first else unit.bindings[node.name]
        found = [self._binding(binding, unit) for binding in bindings]
        if any(_starts_empty(binding) for binding in bindings):
            found.append(self._collected(node.name, unit))
        if "device" in found and "host" not in found:
            return "device"
        if found and all(f == "host" for f in found):
            return "host"
        if "device" in found and all(
            f == "device" or _is_start_value(b) for f, b in zip(found, bindings, strict=False)
        ):
            return "device"
        if "host" not in found and self._fed_to_backward(node.name, unit, bindings):
            return "device"
        return None

    def _collected(self, name: str, unit: Unit) -> Where:
        """What a list or dict that starts empty is filled with in its unit."""
        parts: list[Node] = []
        for store in unit.subscript_stores:
            value = getattr(store.parent, "value", None)
            if (
                isinstance(store.value, nodes.Name)
                and store.value.name == name
                and value is not None
            ):
                parts.append(value)
        for call in unit.calls:
            func = call.func
            if (
                isinstance(func, nodes.Attribute)
                and func.attrname in ("append", "update", "extend")
                and isinstance(func.expr, nodes.Name)
                and func.expr.name == name
            ):
                parts.extend(call.args)
        found = [self.where(part) for part in parts]
        if "device" in found:
            return "device"
        return "host" if found and all(f == "host" for f in found) else None

    def _fed_to_backward(self, name: str, unit: Unit, bindings: list[Binding]) -> bool:
        if any(b.path == ("param",) for b in bindings):
            return name in self.backpropagated(unit)
        return name in self.feeding_backward(unit) and all(_computed(b) for b in bindings)

    def _binding(self, binding: Binding, unit: Unit) -> Where:
        if binding.path == ("param",):
            return self._parameter(unit, binding.name)
        if binding.value is None or binding.path == ("import",):
            return None
        if binding.path == ("aug",):
            return self.where(binding.value)
        if binding.path and binding.path[0] == "iter":
            return self._iterated(binding.value, binding.path[1:])
        if binding.path == ("enter",):
            return None
        return (
            self._part(binding.value, binding.path) if binding.path else self.where(binding.value)
        )

    def _parameter(self, unit: Unit, name: str) -> Where:
        if name in (unit.arguments.kwarg, unit.arguments.vararg):
            return self._variadic(unit, name)
        if name in HOOK_TENSORS and self.steps.is_hook(unit):
            return "device"
        found: list[Where] = []
        for site in self.graph.sites_of(unit):
            given = self.graph.given(site, unit, name)
            found.append(self.where(given) if given is not None else None)
        if "device" in found and "host" not in found:
            return "device"
        if found and all(f == "host" for f in found):
            return "host"
        if "device" in found:
            return "device"  # at least one caller passes a tensor of the device
        return None

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
        found = [self.where(p) for p in passed]
        if "device" in found:
            return "device"
        return "host" if found and all(f == "host" for f in found) else None

    def _iterated(self, iterable: Node, path: tuple[int | str, ...]) -> Where:
        """An element of ``iterable``: a batch of a loader is on the host."""
        if isinstance(iterable, nodes.Call):
            name = getattr(iterable.func, "attrname", getattr(iterable.func, "name", ""))
            if name == "enumerate" and iterable.args and path:
                return "host" if path[0] == 0 else self._iterated(iterable.args[0], path[1:])
            if name in ("range", "trange"):
                return "host"
            if (
                name == "zip"
                and path
                and isinstance(path[0], int)
                and path[0] < len(iterable.args)
            ):
                return self._iterated(iterable.args[path[0]], path[1:])
            if (
                name in ("tqdm", "iter", "reversed", "list", "islice", "cycle", "sorted")
                and iterable.args
            ):
                return self._iterated(iterable.args[0], path)
            if name in ("items", "named_parameters", "named_buffers") and path and path[0] == 0:
                return "host"
            if name in ("named_parameters", "named_buffers"):
                return "device"
            if name in ("items", "values") and isinstance(iterable.func, nodes.Attribute):
                return self.where(iterable.func.expr)
        roles = self.roles.of(iterable)
        if roles & {"loader", "engine loader"}:
            return "host"
        if "prepared loader" in roles:
            return "device"
        return self.where(iterable)

    def _part(self, value: Node, path: Iterable[int | str]) -> Where:
        """A part of what a call gives: of a tuple that a function of the project returns."""
        steps = list(path)
        if isinstance(value, nodes.Call) and steps and isinstance(steps[0], int):
            units = self.graph.targets_of(value)
            found: list[Where] = []
            for unit in units:
                for statement in unit.returns:
                    given = statement.value if isinstance(statement, nodes.Return) else statement
                    size = len(given.elts) if isinstance(given, nodes.Tuple) else 0
                    if isinstance(given, nodes.Tuple) and -size <= steps[0] < size:
                        found.append(self.where(elements(given)[steps[0]]))
                    elif given is not None:
                        found.append(self.where(given))
            if found:
                known = {f for f in found if f is not None}
                return known.pop() if len(known) == 1 else None
        return self.where(value)


def _is_no_tensor(node: Node) -> bool:
    """What no tensor is compared with by value: None, a string, a dict."""
    if isinstance(node, nodes.Const):
        return node.value is None or isinstance(node.value, str)
    return isinstance(node, nodes.Dict | nodes.List | nodes.Set)


def _is_called(node: Node) -> bool:
    return isinstance(node.parent, nodes.Call) and node.parent.func is node


def _base(node: Node) -> Node:
    at = node
    while isinstance(at, nodes.Subscript):
        at = at.value
    return at


def _is_start_value(binding: Binding) -> bool:
    """``total = 0`` before a loop that adds tensors to it."""
    return isinstance(binding.value, nodes.Const | nodes.List | nodes.Dict) and not binding.path


def _starts_empty(binding: Binding) -> bool:
    value = binding.value
    if binding.path:
        return False
    if isinstance(value, nodes.Call):
        return dotted(value.func).rpartition(".")[2] in (
            "dict",
            "list",
            "defaultdict",
            "OrderedDict",
        )
    return (isinstance(value, nodes.Dict) and not value.items) or (
        isinstance(value, nodes.List) and not value.elts
    )


def _computed(binding: Binding) -> bool:
    return (
        binding.value is not None
        and binding.path[:1] not in (("iter",), ("import",), ("enter",))
        and isinstance(
            binding.value,
            nodes.Call | nodes.BinOp | nodes.UnaryOp | nodes.AugAssign | nodes.Subscript,
        )
    ) or (isinstance(binding.value, nodes.Attribute) and says_output(binding.value))
