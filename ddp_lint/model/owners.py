"""Subject, part 3: whose gradients: which optimizer holds the parameters that a move works on.

Three answers as everywhere: yes, no, and None for "cannot be told".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from astroid import nodes

from ddp_lint.model.facts import Facts
from ddp_lint.model.flow import reaching
from ddp_lint.model.frames import Frame, key, origins_in, resolve
from ddp_lint.model.origins import Instance, Item, Made, Member, Origin, Param, Result, Unknown
from ddp_lint.model.torch_api import ROLES, WRAPPERS
from ddp_lint.model.tree import COMPREHENSIONS, Node, elements, entries
from ddp_lint.model.ways import Event

_PARAMETERS = frozenset({"parameters", "named_parameters", "trainable_parameters",
                         "get_parameters", "optim_parameters", "param_groups"})  # fmt: skip
_MODULES = frozenset({"module", "ddp", "fsdp", "dp", "prepared module", "lightning module"})
_OPTIMIZERS = frozenset({"optimizer", "prepared optimizer"})
_DEEPEST = 5


@dataclass(frozen=True)
class Sources:
    """Where parameters come from: modules, or the optimizers whose groups they are.

    ``whole`` says that they are all parameters of those, not a part.  ``known`` says that there
    are no others.
    """

    modules: frozenset[Origin] = frozenset()
    optimizers: frozenset[Origin] = frozenset()
    keys: frozenset[str] = frozenset()
    whole: bool = True
    known: bool = True

    def __or__(self, other: Sources) -> Sources:
        return Sources(
            self.modules | other.modules,
            self.optimizers | other.optimizers,
            self.keys | other.keys,
            self.whole and other.whole,
            self.known and other.known,
        )


NOBODY = Sources(known=False)


class Owners:
    """Who owns which parameters in one program."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self._of_optimizer: dict[Origin, Sources] = {}

    # -- the same thing? --------------------------------------------------------------------

    def same(self, first: Node, a: Frame, second: Node, b: Frame) -> bool | None:
        """Whether two expressions name the same object."""
        if key(first, a) == key(second, b):
            return True
        one = origins_in(self.facts.graph, first, a)
        other = origins_in(self.facts.graph, second, b)
        return _overlap(one, other)

    def holds(self, optimizer: Node, a: Frame, parameters: Node | None, b: Frame) -> bool | None:
        """Whether ``parameters`` (or a module, or an optimizer) are what ``optimizer`` steps."""
        if parameters is None:
            return None
        found = self.sources(parameters, b)
        origins = origins_in(self.facts.graph, optimizer, a)
        if found.optimizers or key(optimizer, a) in found.keys:
            if key(optimizer, a) in found.keys:
                return True
            overlap = _overlap(origins, found.optimizers)
            return overlap if overlap or not found.modules else None
        held = NOBODY
        for origin in origins:
            held = held | self.held_by(origin) if held is not NOBODY else self.held_by(origin)
        overlap = _overlap(held.modules, found.modules)
        if overlap:
            return True
        if overlap is False and held.known and found.known and found.whole:
            return False
        return None

    def share(self, first: Node, a: Frame, second: Node, b: Frame) -> bool | None:
        """Whether two expressions give parameters (or gradients) of the same module."""
        one, other = self.sources(first, a), self.sources(second, b)
        if one.keys & other.keys:
            return True
        overlap = _overlap(one.modules | one.optimizers, other.modules | other.optimizers)
        return overlap if overlap or (one.known and other.known) else None

    # -- sources ----------------------------------------------------------------------------

    def held_by(self, optimizer: Origin) -> Sources:
        """The modules whose parameters an optimizer was made with."""
        known = self._of_optimizer.get(optimizer)
        if known is not None:
            return known
        self._of_optimizer[optimizer] = NOBODY
        found = NOBODY
        match optimizer:
            case Made(call=call) | Instance(call=nodes.Call() as call):
                given = [
                    *call.args[:1],
                    *(
                        k.value
                        for k in call.keywords
                        if k.arg in ("params", "parameters", "model")
                    ),
                ]
                if given:
                    frame = Frame(self.facts.values.unit_of(call))
                    found = self.sources(given[0], frame)
            case Item(of=Result(of=Member(), call=call), how=int(how)) if how < len(call.args):
                for origin in self.facts.origins(call.args[how]):
                    found = self.held_by(origin)
            case Result(of=Member(), call=call) if len(call.args) == 1:
                for origin in self.facts.origins(call.args[0]):
                    found = self.held_by(origin)
        self._of_optimizer[optimizer] = found
        return found

    def sources(self, node: Node, frame: Frame, depth: int = 0) -> Sources:
        """Where the parameters that ``node`` gives come from."""
        if depth > _DEEPEST:
            return NOBODY
        written = resolve(node, frame)
        node, frame = written.node, written.frame
        match node:
            case nodes.Call():
                return self._of_call(node, frame, depth)
            case nodes.Subscript(value=inner):
                return self.sources(inner, frame, depth + 1)
            case nodes.Attribute(attrname="param_groups" | "params", expr=inner):
                return self._of_object(inner, frame)
            case nodes.List() | nodes.Tuple():
                return self._together(elements(node), frame, depth)
            case nodes.Starred(value=inner):
                return self.sources(inner, frame, depth + 1)
            case nodes.Dict():
                values = [v for k, v in entries(node) if getattr(k, "value", "") == "params"]
                return self._together(values, frame, depth)
            case nodes.BinOp(op="+"):
                return self._together([node.left, node.right], frame, depth)
            case _ if isinstance(node, COMPREHENSIONS):
                return self.sources(node.generators[0].iter, frame, depth + 1)
            case nodes.Name():
                return self._of_name(node, frame, depth)
        return self._of_object(node, frame)

    def _together(self, parts: list[Node], frame: Frame, depth: int) -> Sources:
        found = [self.sources(part, frame, depth + 1) for part in parts]
        if not found:
            return NOBODY
        whole = found[0]
        for other in found[1:]:
            whole = whole | other
        return whole

    def _of_name(self, node: nodes.Name, frame: Frame, depth: int) -> Sources:
        direct = self._of_object(node, frame)
        if direct.modules or direct.optimizers:
            return direct
        unit = frame.unit
        if node.name not in unit.bindings:
            return direct
        values = []
        for binding in reaching(unit, node.name, node):
            if binding.value is None or binding.path[:1] == ("param",):
                return direct
            if binding.path[:1] not in ((), ("iter",)):
                return direct
            values.append(binding.value)
        return self._together(values, frame, depth) if values else direct

    def _of_call(self, call: nodes.Call, frame: Frame, depth: int) -> Sources:
        name = getattr(call.func, "attrname", getattr(call.func, "name", ""))
        if name in _PARAMETERS and isinstance(call.func, nodes.Attribute):
            return self._of_object(call.func.expr, frame)
        direct = self._of_object(call, frame)
        if direct.modules or direct.optimizers:
            return direct
        # ``filter(f, model.parameters())``, ``chain(a.parameters(), b.parameters())``, and
        # functions that sort parameters into groups: from the modules that they are given.
        parts = [self.sources(a, frame, depth + 1) for a in call.args]
        telling = [part for part in parts if part.modules or part.optimizers]
        if not telling:
            return NOBODY
        found = telling[0]
        for other in telling[1:]:
            found = found | other
        plain = name in ("filter", "list", "chain", "tuple", "iter", "set", "master_params")
        return Sources(
            found.modules, found.optimizers, found.keys, found.whole, found.known and plain
        )

    def _of_object(self, node: Node, frame: Frame) -> Sources:
        written = resolve(node, frame)
        origins = origins_in(self.facts.graph, node, frame)
        text = key(node, frame)
        modules: set[Origin] = set()
        optimizers: set[Origin] = set()
        known = bool(origins)
        for origin in origins:
            for one in self._unwrapped(origin):
                role = self.facts.roles.role(one)
                if role in _OPTIMIZERS:
                    optimizers.add(one)
                elif role in _MODULES or isinstance(one, Param | Member):
                    modules.add(one)
                    known = known and not isinstance(one, Unknown)
                else:
                    known = False
        return Sources(
            frozenset(modules),
            frozenset(optimizers),
            frozenset({text}),
            not _is_part(written.node),
            known,
        )

    def _unwrapped(self, origin: Origin, depth: int = 0) -> Iterator[Origin]:
        """The origin, and what it wraps or is the prepared form of."""
        yield origin
        if depth > _DEEPEST:
            return
        inside: Node | None = None
        match origin:
            case Made(name=name, call=call) if ROLES.get(name) in WRAPPERS and call.args:
                inside = call.args[0]
            case Item(of=Result(of=Member(name="prepare" | "setup"), call=call), how=int(how)):
                inside = call.args[how] if how < len(call.args) else None
            case Result(of=Member(name="prepare" | "setup" | "setup_module"), call=call):
                inside = call.args[0] if len(call.args) == 1 else None
        if inside is not None:
            for one in self.facts.origins(inside):
                yield from self._unwrapped(one, depth + 1)

    def maybe(self, optimizer: Node, frame: Frame, event: Event) -> bool:
        """Whether what ``event`` works on may be what ``optimizer`` steps."""
        target = event.move.target
        if target is None:
            return True
        if event.move.kind in ("step", "unscale"):
            return self.same(optimizer, frame, target, event.frame) is not False
        return self.holds(optimizer, frame, target, event.frame) is not False

    def surely_other(self, optimizer: Node, frame: Frame, event: Event) -> bool:
        return not self.maybe(optimizer, frame, event)


def _overlap(one: frozenset[Origin], other: frozenset[Origin]) -> bool | None:
    """True where they share an origin, False where both are told apart for certain."""
    if one & other:
        return True
    if not one or not other:
        return None
    if any(isinstance(o, Unknown) for o in one | other):
        return None
    telling = (Made, Instance)
    if all(isinstance(o, telling) for o in one | other):
        return False
    if all(isinstance(o, Param) for o in one | other):
        return False  # two parameters of a function that nobody calls
    return None


def _is_part(node: Node) -> bool:
    """``model.encoder``: a part of a module, and its parameters part of another's."""
    return isinstance(node, nodes.Attribute) and not (
        isinstance(node.expr, nodes.Name) and node.expr.name == "self"
    )
