"""Layer 11, epochs: which loops go through a loader anew, and who tells its sampler so."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from astroid import nodes

from ddp_lint.finding import Fix, Related
from ddp_lint.model.drawing import Draw, Drawing
from ddp_lint.model.entering import holds
from ddp_lint.model.facts import Facts, Spot
from ddp_lint.model.flow import always_exits, with_items
from ddp_lint.model.loading import Loader, Loading, Sampler, name_of
from ddp_lint.model.modules import Unit
from ddp_lint.model.origins import Expression, Instance, Made, Member, Origin, inner
from ddp_lint.model.passing import argument_for
from ddp_lint.model.steps import Happening, StepLoop
from ddp_lint.model.torch_api import NO_GRAD
from ddp_lint.model.tree import Node, dotted, source, walk

_DRAWING = frozenset({"next", "__next__"})


@dataclass(frozen=True)
class Feed:
    """A training loop and what it draws its batches from."""

    loop: StepLoop
    draw: Draw

    @property
    def loader(self) -> Loader:
        return self.draw.source.loader


def feeds(drawing: Drawing) -> Iterator[Feed]:
    """What every step loop of the program draws from."""
    for loop in drawing.facts.steps.loops:
        seen: set[Draw] = set()
        for node, at in _drawn(drawing.facts, loop):
            for draw in drawing.draws(node, at):
                if draw not in seen and _trains(drawing.facts, loop, draw):
                    seen.add(draw)
                    yield Feed(loop, draw)


def _drawn(facts: Facts, loop: StepLoop) -> Iterator[tuple[Node, Node]]:
    """Expressions that the loop, or one around it, iterates, each with where that begins."""
    for around in [loop.node, *(node for node, _ in loop.outer_loops)]:
        if isinstance(around, nodes.For):
            yield around.iter, around
    for happening in loop.calls:
        call = happening.node
        assert isinstance(call, nodes.Call)
        if isinstance(call.func, nodes.Name) and call.func.name == "next" and call.args:
            node = call.args[0]
        elif isinstance(call.func, nodes.Attribute) and call.func.attrname in _DRAWING:
            node = call.func.expr
        else:
            continue
        written = _as_written(node, happening, loop)
        if written is not None:
            yield written, call


def _as_written(node: Node, happening: Happening, loop: StepLoop) -> Node | None:
    """The iterator in the words of the loop's own unit, or of an object of its class.

    In ``prefetcher.next()`` the method of the prefetcher asks its own iterator; what the loop
    draws from is the prefetcher.
    """
    unit = happening.unit
    for call, caller in reversed(happening.chain):
        root = node
        while isinstance(root, nodes.Attribute):
            root = root.expr
        if not isinstance(root, nodes.Name) or root.name not in unit.bindings:
            return node
        if root.name == unit.self_name:
            if unit.owner is loop.unit.owner:
                return node
            if not isinstance(call.func, nodes.Attribute):
                return None
            node = call.func.expr
        elif root is node and root.name in unit.parameters:
            given = argument_for(call, unit, root.name)
            if given is None:
                return None
            node = given
        else:
            return node
        unit = caller
    return node


def _trains(facts: Facts, loop: StepLoop, draw: Draw) -> bool:
    """Whether the loop trains where it is given this loader: ``run(loader, train=False)``
    reaches no backward pass, and under ``no_grad`` none can be meant."""
    entered = next((call for unit, call in draw.callers if unit is loop.unit), None)
    if entered is None:
        return True
    for context, _ in with_items(entered):
        if isinstance(context, nodes.Call) and facts.names(context) & NO_GRAD:
            return False
    return not loop.backwards or any(
        all(
            holds(facts, condition.test, loop.unit, entered) is not (not condition.holds)
            for condition, unit in loop.conditions_of(backward)
            if unit is loop.unit
        )
        for backward in loop.backwards
    )


@dataclass(frozen=True)
class EpochLoop(Spot):
    """A loop that starts a pass over a loader again and again."""

    unit: Unit
    feed: Feed
    sampler: Sampler
    epochs: Epochs

    @property
    def loader(self) -> Loader:
        return self.feed.loader

    @property
    def sampler_text(self) -> str:
        """How the sampler can be named: best by an expression that there is at the epoch loop."""
        here = self._reachable()
        if here is not None:
            return here
        if self._iterated is not None:
            return f"{source(self._iterated)}.{self._inside_loader}"
        if self.sampler.name:
            return self.sampler.name
        given = next(iter(self.loader.arguments.given("sampler")), None)
        if isinstance(given, nodes.Name | nodes.Attribute):
            return source(given)
        return f"{self.loader.name}.{self._inside_loader}"

    @property
    def sampler_class(self) -> str:
        return dotted(self.sampler.node.func).rpartition(".")[2] or "DistributedSampler"

    @property
    def loader_text(self) -> str:
        """How the loader can be named, in the same way."""
        if not self._name_here(self.loader.node) and self._iterated is not None:
            return source(self._iterated)
        return self.loader.name

    @cached_property
    def _iterated(self) -> Node | None:
        """What stands for the loader in the unit of the epoch loop: what is iterated there, or
        handed on to whoever does."""
        at = self.feed.draw.at
        for node in (getattr(at, "iter", at), *(call for _, call in self.feed.draw.callers)):
            if self.facts.values.unit_of(node) is not self.unit:
                continue
            for part in walk(node):
                if isinstance(part, nodes.Name | nodes.Attribute) and any(
                    isinstance(o, Made) and o.call is self.loader.node
                    for o in self.facts.origins(part)
                ):
                    return part
        return None

    @property
    def _inside_loader(self) -> str:
        direct = any(
            one.node is self.sampler.node
            for given in self.loader.arguments.given("sampler")
            for one in self.sampler.loading.samplers_of(given, self.loader.context)
        )
        return "sampler" if direct else "batch_sampler.sampler"

    @property
    def is_told(self) -> bool:
        """Whether some ``set_epoch`` of the program reaches the sampler, or may."""
        return self.epochs.may_be_told(self.sampler)

    @property
    def related(self) -> tuple[Related, ...]:
        found = [
            self.facts.related(
                self.sampler.node, "this sampler shuffles by its epoch, which stays 0"
            )
        ]
        if self.loader.node.lineno != self.sampler.node.lineno:
            found.append(self.facts.related(self.loader.node, "this loader deals in its order"))
        if self.feed.draw.at is not self.node:
            found.append(self.facts.related(self.feed.draw.at, "here each epoch goes through it"))
        return tuple(found)

    @property
    def counter(self) -> str:
        """The variable that counts the epochs, "" where there is none."""
        if isinstance(self.node, nodes.For) and isinstance(self.node.target, nodes.AssignName):
            name = str(self.node.target.name)
            return "" if name == "_" else name
        return ""

    @property
    def fix(self) -> Fix | None:
        """Tell the sampler at the start of the body, where it can be named there."""
        if not isinstance(self.node, nodes.For):
            return None
        call = self.node.iter
        counts = isinstance(call, nodes.Call) and dotted(call.func).rpartition(".")[2] in (
            "range",
            "trange",
        )
        if not self.counter or not counts:
            return None
        told = self._reachable()
        if told is None:
            return None
        text = f"{told}.set_epoch({self.counter})"
        if self.is_conditional:
            return None
        edit = self.facts.insert_inside(self.node, text)
        return Fix(f"Call `{text}` at the start of each epoch", (edit,), safe=True)

    @property
    def is_conditional(self) -> bool:
        """Whether the loader is given something else on another way: ``None``, or one that has
        no ``set_epoch``; of what it makes for itself then, a ``RandomSampler`` has none."""
        return any(
            not isinstance(o, Made) or o.call is not self.sampler.node
            for node in self.loader.sampler_nodes
            for o in self.sampler.loading.calls.origins(node, self.loader.context)
            if self._inside_loader == "sampler"
        )

    def _reachable(self) -> str | None:
        """An expression for the sampler that means the same at the epoch loop."""
        for node, path in ((self.sampler.node, ""), (self.loader.node, f".{self._inside_loader}")):
            name = self._name_here(node)
            if name:
                return f"{name}{path}"
        return None

    def _name_here(self, made: nodes.Call) -> str:
        name = name_of(made)
        at = self.facts.values.unit_of(made)
        if not name:
            return ""
        if "." in name:
            same = at.owner is not None and at.owner is self.unit.owner
            return name if same and name.startswith(f"{at.self_name}.") else ""
        if at is self.unit or (at is self.unit.module.body and name not in self.unit.bindings):
            return name
        return ""


class Epochs:
    """Epoch loops of one program, and the calls of ``set_epoch`` in it."""

    def __init__(self, loading: Loading) -> None:
        self.loading = loading
        self.facts = loading.facts
        self.drawing = Drawing(loading)

    @cached_property
    def feeds(self) -> list[Feed]:
        return list(feeds(self.drawing))

    @cached_property
    def loops(self) -> list[EpochLoop]:
        """Loops in which a training loop goes through a loader with a distributed sampler anew."""
        found: dict[tuple[int, int], EpochLoop] = {}
        for feed in self.feeds:
            if feed.draw.source.owned:
                continue
            for sampler in feed.loader.samplers:
                made_in = {
                    id(node)
                    for node, _ in self.facts.steps.loops_outside(
                        sampler.node, self.facts.values.unit_of(sampler.node)
                    )
                }
                for node, unit in feed.draw.loops:
                    if id(node) in made_in or turns_once(node):
                        continue
                    loop = EpochLoop(self.facts, node, unit, feed, sampler, self)
                    found.setdefault((id(node), id(sampler.node)), loop)
                    break
        return list(found.values())

    # -- who is told ------------------------------------------------------------------------

    @cached_property
    def _receivers(self) -> list[Node]:
        found: list[Node] = []
        for call, _ in self.facts.calls:
            func = call.func
            if isinstance(func, nodes.Attribute) and func.attrname == "set_epoch":
                found.append(func.expr)
            elif (
                dotted(func) == "getattr" and len(call.args) > 1 and _says_set_epoch(call.args[1])
            ):
                found.append(call.args[0])
        return found

    def may_be_told(self, sampler: Sampler) -> bool:
        return any(
            self._may_be(origin, sampler)
            for receiver in self._receivers
            for origin in self.facts.origins(receiver)
        )

    def tells(self, sampler: Sampler) -> bool:
        """Whether some ``set_epoch`` is certainly meant for this sampler."""
        return any(
            self._is(origin, sampler)
            for receiver in self._receivers
            for origin in self.facts.origins(receiver)
        )

    def _is(self, origin: Origin, sampler: Sampler) -> bool:
        """The sampler itself, or ``loader.sampler`` of a loader that deals by it."""
        base = list(inner(origin))[-1]
        if not isinstance(base, Made | Instance):
            return False
        if base.call is sampler.node:
            return base is origin
        if not isinstance(base, Made) or self.facts.roles.role(base) != "loader":
            return False
        return self._deals(base.call, sampler)

    def _may_be(self, origin: Origin, sampler: Sampler) -> bool:
        match origin:
            case Expression():
                return False
            case Made(call=call) | Instance(call=call) if call is sampler.node:
                return True
            case Made(call=call):
                role = self.facts.roles.role(origin)
                if role == "loader":
                    return self._deals(call, sampler)
                return role == "" and self._mentions(call, sampler)
            case Instance(cls=cls):
                # A method of the project tells what it tells in its own text, seen above.
                return not any("set_epoch" in c.methods for c in self.facts.values.mro(cls))
            case Member():
                base = list(inner(origin))[-1]
                if isinstance(base, Made) and self.facts.roles.role(base) in (
                    "loader",
                    "batch sampler",
                ):
                    return self._may_be(base, sampler)
                return True
        return True

    def _mentions(self, call: nodes.Call, sampler: Sampler) -> bool:
        given = [*call.args, *(k.value for k in call.keywords)]
        for node in given:
            for origin in self.facts.origins(node):
                if isinstance(origin, Made) and (
                    origin.call is sampler.node
                    or (
                        self.facts.roles.role(origin) == "loader"
                        and self._deals(origin.call, sampler)
                    )
                ):
                    return True
        return False

    def _deals(self, loader: nodes.Call, sampler: Sampler) -> bool:
        """Whether a loader made by this call may deal by the sampler, in whatever context."""
        return any(one.node is sampler.node for one in self.loading.loader(loader).samplers)


def turns_once(loop: Node) -> bool:
    """A loop whose body runs once: ``range(1)``, or one that always leaves."""
    if isinstance(loop, nodes.For):
        call = loop.iter
        if isinstance(call, nodes.Call) and dotted(call.func) == "range" and len(call.args) == 1:
            argument = call.args[0]
            return isinstance(argument, nodes.Const) and argument.value == 1
        if isinstance(call, nodes.List | nodes.Tuple):
            return len(call.elts) == 1
    leaves = always_exits(loop.body) if isinstance(loop, nodes.For | nodes.While) else None
    return leaves is not None and not isinstance(leaves, nodes.Continue)


def _says_set_epoch(node: Node) -> bool:
    return isinstance(node, nodes.Const) and node.value == "set_epoch"
