"""Layer 12, transfers: batches of a loader that a loop moves to the device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from astroid import nodes

from ddp_lint.finding import Edit, Fix, Related
from ddp_lint.model.arguments import inserted
from ddp_lint.model.drawing import Drawing
from ddp_lint.model.facts import Facts, Spot
from ddp_lint.model.flow import loops_around, reaching
from ddp_lint.model.loading import Loader, Loading
from ddp_lint.model.modules import Unit
from ddp_lint.model.origins import Expression, Made, Origin
from ddp_lint.model.passing import argument_for
from ddp_lint.model.placing import is_cpu, may_be_another
from ddp_lint.model.steps import Happening
from ddp_lint.model.tree import Node, dotted, elements, is_within, walk

_WRAPPING = frozenset({"enumerate", "tqdm", "iter"})
#: Methods that give another look at the same memory.
_VIEWS = frozenset(
    {"view", "view_as", "reshape", "flatten", "unflatten", "squeeze", "unsqueeze", "permute",
     "transpose", "t", "narrow", "select", "expand", "chunk", "split", "unbind", "detach",
     "movedim", "swapaxes", "items", "values", "get", "pop"}
)  # fmt: skip


@dataclass(frozen=True)
class Transfer(Spot):
    """The first move of a batch whose loader does not fit it; ``others`` are those after it."""

    node: nodes.Call
    loader: Loader
    pinned: bool
    others: tuple[nodes.Call, ...]

    @property
    def related(self) -> tuple[Related, ...]:
        says = "pins its batches" if self.pinned else "does not pin its batches"
        found = [self.facts.related(self.loader.node, f"`{self.loader.name}` {says}")]
        found += [self.facts.related(call, "the same here") for call in self.others]
        return tuple(found)

    @property
    def fix(self) -> Fix | None:
        """None where a device may be of another kind than CUDA: on MPS nothing is pinned, and a
        copy that does not block reads what may have been let go (pytorch/pytorch#189690)."""
        if self.pinned:
            moves = [self.node, *self.others]
            if any(self._may_go_elsewhere(move) for move in moves):
                return None
            edits = tuple(inserted(self.facts, move, "non_blocking=True") for move in moves)
            return Fix("Add `non_blocking=True` to the moves of the batch", edits, safe=True)
        edit = self._pin()
        return Fix("Let the loader pin its batches", (edit,), safe=True) if edit else None

    def _may_go_elsewhere(self, move: nodes.Call) -> bool:
        target = _target(move)
        goes_anywhere = getattr(move.func, "attrname", "") == "to"
        return goes_anywhere and target is not None and may_be_another(self.facts, target)

    def _pin(self) -> Edit | None:
        call = self.loader.node
        written = next((k for k in call.keywords if k.arg == "pin_memory"), None)
        if written is not None:
            return self.facts.replace(written.value, "True")
        if self.loader.arguments.given("pin_memory"):
            return None
        return inserted(self.facts, call, "pin_memory=True")


class Transfers:
    def __init__(self, loading: Loading, drawing: Drawing) -> None:
        self.loading = loading
        self.drawing = drawing
        self.facts: Facts = loading.facts

    def __iter__(self) -> Iterator[Transfer]:
        """One for each loop at most, and for each move the loop that trains before others."""
        training = {id(loop.node) for loop in self.facts.steps.loops}
        loops = [
            (loop, unit)
            for unit in (self.facts.units if self.loading.loaders else ())
            for loop in unit.loops
            if isinstance(loop, nodes.For)
        ]
        seen: set[int] = set()
        for loop, unit in sorted(loops, key=lambda pair: id(pair[0]) not in training):
            found = self._in_loop(loop, unit)
            if found is not None and id(found.node) not in seen:
                seen.add(id(found.node))
                yield found

    def _in_loop(self, loop: nodes.For, unit: Unit) -> Transfer | None:
        loaders = self._loaders(loop)
        pinned = {self.pins(loader) for loader in loaders}
        if len(pinned) != 1 or None in pinned:
            return None
        pins = pinned == {True}
        moves = self._moves(loop, unit)
        wrong = [call for call, asks in moves if asks is (not pins)]
        if not wrong:
            return None
        return Transfer(self.facts, wrong[0], loaders[0], pins, tuple(wrong[1:]))

    def _loaders(self, loop: nodes.For) -> list[Loader]:
        """The loaders that the loop goes through with nothing between that may move a batch."""
        node: Node = loop.iter
        while isinstance(node, nodes.Call) and node.args:
            if dotted(node.func).rpartition(".")[2] not in _WRAPPING:
                break
            node = node.args[0]
        origins = self.facts.origins(node)
        if not origins or not all(self._is_loader(origin) for origin in origins):
            return []
        draws = self.drawing.draws(loop.iter, loop)
        if any(draw.source.owned for draw in draws):
            return []
        return [draw.source.loader for draw in draws]

    def _is_loader(self, origin: Origin) -> bool:
        return isinstance(origin, Made) and self.facts.roles.role(origin) == "loader"

    def pins(self, loader: Loader) -> bool | None:
        """Whether the batches of a loader lie in pinned memory; None where it cannot be told."""
        given = loader.arguments.given("pin_memory")
        if not given:
            return False if loader.arguments.complete else None
        answers = {self._says(o) for node in given for o in self.facts.origins(node)}
        return answers.pop() if len(answers) == 1 and loader.arguments.complete else None

    def _says(self, origin: Origin) -> bool | None:
        match origin:
            case Expression(node=nodes.Const(value=bool(value))):
                return value
            case Made(name="torch.cuda.is_available"):
                return True
            case Expression(node=nodes.Compare(ops=[("==", nodes.Const(value="cuda"))])):
                return True
        return None

    # -- moves ------------------------------------------------------------------------------

    def _moves(self, loop: nodes.For, unit: Unit) -> list[tuple[nodes.Call, bool]]:
        """Moves of the batch to the device, and whether each is asked not to block."""
        batch = _bound(loop.target)
        whole = loop.target.name if isinstance(loop.target, nodes.AssignName) else ""
        parts = self._parts(loop, batch)
        found: dict[int, tuple[nodes.Call, bool]] = {}
        for happening in self.facts.steps.happenings(list(loop.body), unit):
            call = happening.node
            if not isinstance(call, nodes.Call) or id(call) in found or not self._is_move(call):
                continue
            assert isinstance(call.func, nodes.Attribute)
            receiver = call.func.expr
            if _is_of_inner_loop(happening.top, receiver, loop, parts):
                continue
            if isinstance(receiver, nodes.Name) and receiver.name == whole:
                continue  # a batch of a type of its own, perhaps, which moves its own way
            asks = _asks(call)
            if asks is not None and self._is_of_batch(receiver, happening, loop, parts):
                found[id(call)] = call, asks
        return list(found.values())

    def _parts(self, loop: nodes.For, batch: set[str]) -> set[str]:
        """Names of the batch and of what is taken out of it within the loop."""
        found = set(batch)
        for one in loop.body:
            for node in walk(one):
                if isinstance(node, nodes.Assign) and _root(node.value) in found:
                    found.update(name for target in node.targets for name in _bound(target))
                elif isinstance(node, nodes.Comprehension | nodes.For):
                    found.update(_bound(node.target) if _root(node.iter) in found else ())
        return found

    def _is_move(self, call: nodes.Call) -> bool:
        func = call.func
        if not isinstance(func, nodes.Attribute) or self.facts.graph.targets_of(call):
            return False
        if func.attrname == "cuda":
            return not self.facts.names(call)
        if func.attrname != "to":
            return False
        target = _target(call)
        if target is None or _is_type(target):
            return False
        return not is_cpu(self.facts, target)

    def _is_of_batch(
        self, receiver: Node, happening: Happening, loop: nodes.For, parts: set[str]
    ) -> bool:
        name = _root(receiver)
        level = len(happening.chain)
        if not level and self._is_made_anew(receiver, happening.unit, loop):
            return False
        while name and level:
            call, _ = happening.chain[level - 1]
            unit = happening.chain[level][1] if level < len(happening.chain) else happening.unit
            name = self._passed(name, unit, call)
            level -= 1
        return bool(name) and name in parts

    def _is_made_anew(self, receiver: Node, unit: Unit, loop: nodes.For) -> bool:
        """Whether the loop has put something else under the name of a batch: of what is pinned
        only a view is pinned, too; ``torch.cat(views)`` and ``images.float()`` are not."""
        names = [n for n in walk(receiver) if isinstance(n, nodes.Name)][:1]
        return any(
            is_within(binding.node, loop)
            and binding.path == ()
            and binding.value is not None
            and not _root(_viewed(binding.value))
            for name in names
            if name.name in unit.bindings
            for binding in reaching(unit, name.name, name)
        )

    def _passed(self, name: str, unit: Unit, call: nodes.Call) -> str:
        """The name in the caller of what a name of the unit is made from."""
        for _ in range(3):
            if name in unit.parameters:
                given = argument_for(call, unit, name)
                return _root(given) if given is not None else ""
            bindings = unit.bindings.get(name, [])
            value = bindings[0].value if len(bindings) == 1 else None
            if value is None:
                return ""
            name = _root(value)
        return ""


def _is_of_inner_loop(top: Node, receiver: Node, loop: nodes.For, parts: set[str]) -> bool:
    """Whether a loop inside of this one has given the name to a batch of its own."""
    name = _root(receiver)
    return any(
        isinstance(inner, nodes.For)
        and inner is not loop
        and is_within(inner, loop)
        and _root(inner.iter) not in parts
        for inner in loops_around(top)
        if name in parts
    )


def _viewed(node: Node) -> Node:
    """``images`` of ``images.view(-1, 784)``."""
    while (
        isinstance(node, nodes.Call)
        and isinstance(node.func, nodes.Attribute)
        and node.func.attrname in _VIEWS
    ):
        node = node.func.expr
    return node


def _target(call: nodes.Call) -> Node | None:
    """The device that is named in a move."""
    named = (k.value for k in call.keywords if k.arg == "device")
    return next(iter(call.args), None) or next(named, None)


def _bound(target: Node) -> set[str]:
    return {n.name for n in walk(target) if isinstance(n, nodes.AssignName)}


def _root(node: Node) -> str:
    """``batch`` of ``batch["images"]``, ``batch.items()``, ``(batch, other)``."""
    at: Node | None = node
    while at is not None:
        match at:
            case nodes.Name(name=name):
                return str(name)
            case nodes.Subscript(value=value):
                at = value
            case nodes.Attribute(expr=expr):
                at = expr
            case nodes.Call(func=nodes.Attribute(expr=expr, attrname="items" | "values")):
                at = expr
            case nodes.Call(func=nodes.Name(name="zip" | "enumerate"), args=[first, *_]):
                at = first
            case nodes.Tuple() | nodes.List() if at.elts:
                at = elements(at)[0]
            case _:
                return ""
    return ""


def _asks(call: nodes.Call) -> bool | None:
    """Whether a move is asked not to block; None where it cannot be told."""
    given = next((k.value for k in call.keywords if k.arg == "non_blocking"), None)
    if given is None:
        name = getattr(call.func, "attrname", "")
        index = 1 if name == "cuda" else 2
        given = call.args[index] if index < len(call.args) else None
        if given is None and name == "to" and len(call.args) == 2:
            second = call.args[1]
            given = second if isinstance(second, nodes.Const) else None
    if given is None:
        return None if any(k.arg is None for k in call.keywords) else False
    return (
        given.value if isinstance(given, nodes.Const) and isinstance(given.value, bool) else None
    )


def _is_type(node: Node) -> bool:
    text = dotted(node)
    return (text.startswith("torch.") and "device" not in text) or text.endswith("dtype")
