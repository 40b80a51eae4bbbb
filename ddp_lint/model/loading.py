"""Layer 10, loading: loaders, their samplers and their datasets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from astroid import nodes

from ddp_lint.model.arguments import Arguments, Calls, Context
from ddp_lint.model.entering import is_left_out
from ddp_lint.model.facts import Facts, Spot
from ddp_lint.model.modules import Unit
from ddp_lint.model.options import options
from ddp_lint.model.origins import (
    Expression,
    Instance,
    Made,
    Member,
    Origin,
    Origins,
    Param,
    Result,
    Unknown,
    is_none,
)
from ddp_lint.model.torch_api import ROLES
from ddp_lint.model.tree import Node, ancestors, source

#: The names of ``DistributedSampler``.
SAMPLERS = frozenset(name for name, role in ROLES.items() if role == "distributed sampler")
_LOADERS = frozenset(name for name, role in ROLES.items() if role == "loader")

#: The positional parameters of what this module reads.
LOADER = ("dataset", "batch_size", "shuffle", "sampler", "batch_sampler", "num_workers",
          "collate_fn", "pin_memory", "drop_last")  # fmt: skip
SAMPLER = ("dataset", "num_replicas", "rank", "shuffle", "seed", "drop_last")
BATCH_SAMPLER = ("sampler", "batch_size", "drop_last")


@dataclass(frozen=True)
class Sampler(Spot):
    """A ``DistributedSampler``; ``context`` says by which calls its unit was entered.

    ``own`` is what the project makes in its place, of a class that the settings name.
    """

    node: nodes.Call
    loading: Loading
    context: Context = ()
    own: Made | Instance | None = None

    @property
    def arguments(self) -> Arguments:
        parameters = SAMPLER if self.own is None else self._parameters
        return self.loading.calls.arguments(self.node, parameters, self.context)

    @property
    def _parameters(self) -> Iterable[str]:
        maker = self._method("__init__")
        return maker.positional_parameters[1:] if maker is not None else ("dataset",)

    def _method(self, name: str) -> Unit | None:
        """A method of the project's own sampler, where its class is in sight."""
        if not isinstance(self.own, Instance):
            return None
        mro = self.facts.values.mro(self.own.cls)
        return next((cls.methods[name] for cls in mro if name in cls.methods), None)

    @property
    def shuffles(self) -> bool | None:
        """None where it cannot be told."""
        if self.own is not None and self._method("set_epoch") is None:
            return None  # whoever shuffles there asks nobody for the epoch
        given = self.arguments.given("shuffle")
        if self.own is not None and not given:
            maker = self._method("__init__")
            default = maker.default_of("shuffle") if maker is not None else None
            return self.loading.truth([default]) if default is not None else None
        if self.arguments.absent("shuffle"):
            return True
        return self.loading.truth(given, self.context)

    @property
    def drops_last(self) -> bool | None:
        if self.own is not None:
            return None  # how it makes shares equal is its own affair
        if self.arguments.absent("drop_last"):
            return False
        return self.loading.truth(self.arguments.given("drop_last"), self.context)

    @property
    def deals_all(self) -> bool:
        """Whether it is told, or may be, that there is one process: then each gets everything."""
        return any(
            isinstance(origin, Expression) and getattr(origin.node, "value", None) == 1
            for node in self.arguments.given("num_replicas")
            for origin in self._origins_of(node)
        )

    def _origins_of(self, node: Node) -> Origins:
        """On the way by which its unit was entered; of all ways where that one tells nothing."""
        found = self.loading.calls.origins(node, self.context)
        if not found or any(isinstance(origin, Param | Unknown) for origin in found):
            return self.facts.origins(node)
        return found

    @property
    def dataset(self) -> Node | None:
        return next(iter(self.arguments.given("dataset")), None)

    @property
    def name(self) -> str:
        """The variable that holds it, or "" where it is handed on at once."""
        return name_of(self.node)


@dataclass(frozen=True)
class Loader(Spot):
    """A ``DataLoader``: ``node`` is the call that makes it, in a unit entered by ``context``."""

    node: nodes.Call
    loading: Loading
    context: Context = ()

    @cached_property
    def arguments(self) -> Arguments:
        return self.loading.calls.arguments(self.node, LOADER, self.context)

    def origins(self, name: str) -> list[Origin]:
        """What may be passed for a parameter."""
        given = self.arguments.given(name)
        return [o for node in given for o in self.loading.calls.origins(node, self.context)]

    @property
    def name(self) -> str:
        """The variable that holds it, or the call that makes it."""
        return name_of(self.node) or f"{source(self.node.func)}(...)"

    @property
    def dataset(self) -> Node | None:
        return next(iter(self.arguments.given("dataset")), None)

    @cached_property
    def sampler_nodes(self) -> list[Node]:
        return [*self.arguments.given("sampler"), *self.arguments.given("batch_sampler")]

    @cached_property
    def samplers(self) -> list[Sampler]:
        """The distributed samplers that it may have, also inside a batch sampler."""
        found: dict[int, Sampler] = {}
        for node in self.sampler_nodes:
            for sampler in self.loading.samplers_of(node, self.context):
                found[id(sampler.node)] = sampler
        return list(found.values())

    @cached_property
    def workers(self) -> int | None:
        """How many there are: 0 where none are asked for, None where it cannot be told."""
        given = self.arguments.given("num_workers")
        if not given:
            return 0 if self.arguments.complete else None
        counts = {self.loading.count(node, self.context) for node in given}
        return counts.pop() if len(counts) == 1 else None

    @property
    def has_no_sampler(self) -> bool:
        """For certain: none is given, or None is."""
        return self.arguments.complete and all(
            self.loading.is_none(node, self.context) for node in self.sampler_nodes
        )


class Loading:
    """Loaders of one program."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.calls = Calls(facts)
        self._loaders: dict[tuple[int, Context], Loader] = {}
        self._samplers: dict[tuple[int, Context], Sampler] = {}

    # -- nouns ------------------------------------------------------------------------------

    def loader(self, call: nodes.Call, context: Context = ()) -> Loader:
        key = id(call), context
        return self._loaders.setdefault(key, Loader(self.facts, call, self, context))

    def sampler(
        self, call: nodes.Call, context: Context = (), own: Made | Instance | None = None
    ) -> Sampler:
        key = id(call), context
        return self._samplers.setdefault(key, Sampler(self.facts, call, self, context, own))

    @cached_property
    def loaders(self) -> list[Loader]:
        """Every loader that the program makes."""
        return [self.loader(call) for call, _ in self.facts.calls_to(_LOADERS)]

    def samplers_of(self, node: Node, context: Context = (), depth: int = 0) -> Iterator[Sampler]:
        for origin in self.calls.origins(node, context):
            yield from self._samplers_in(origin, context, depth)

    def _samplers_in(self, origin: Origin, context: Context, depth: int) -> Iterator[Sampler]:
        made = origin.call if isinstance(origin, Made | Instance) else None
        if depth > 3 or (made is not None and is_left_out(self.facts, made, context)):
            return
        given: list[Node] = []
        match origin:
            case Made() | Instance(call=nodes.Call()) if self._is_own_sampler(origin):
                assert isinstance(origin.call, nodes.Call)
                yield self.sampler(origin.call, context, origin)
            case Made(call=call):
                role = self.facts.roles.role(origin)
                if role == "distributed sampler":
                    yield self.sampler(call, context)
                elif role == "batch sampler":
                    given = self.calls.arguments(call, BATCH_SAMPLER, context).given("sampler")
            case Instance(call=nodes.Call() as call):
                if self.facts.roles.role(origin) in ("sampler", "batch sampler"):
                    given = [*call.args, *(k.value for k in call.keywords)]
        for argument in given:
            yield from self.samplers_of(argument, context, depth + 1)

    def _is_own_sampler(self, origin: Made | Instance) -> bool:
        return self.facts.roles.is_called(origin, self.facts.words.samplers)

    # -- small questions --------------------------------------------------------------------

    def truth(self, given: list[Node], context: Context = ()) -> bool | None:
        """What a flag is; True where one caller of several says so."""
        found: set[bool | None] = set()
        for node in given:
            for origin in self.calls.origins(node, context):
                match origin:
                    case Expression(node=nodes.Const(value=value)):
                        found.add(bool(value))
                    case Expression(node=nodes.UnaryOp(op="not", operand=operand)):
                        inner = self.truth([operand], context)
                        found.add(None if inner is None else not inner)
                    case _:
                        found.add(None)
        if True in found:
            return True
        return False if found == {False} else None

    def count(self, node: Node, context: Context = ()) -> int | None:
        """A number that is written down, or the default of an option; None for others."""
        found = {self._count(origin) for origin in self.calls.origins(node, context)}
        return found.pop() if len(found) == 1 else None

    def _count(self, origin: Origin) -> int | None:
        match origin:
            case Expression(node=nodes.Const(value=int(value))):
                return value
            case Made(name="os.cpu_count" | "multiprocessing.cpu_count"):
                return 8
            case Made(name="builtins.int" | "builtins.min" | "builtins.max", call=call):
                found = [self.count(argument) for argument in call.args]
                if None in found or not found:
                    return None
                return (max if origin.name.endswith("max") else min)(n or 0 for n in found)
            case Member(name=name, of=Result(of=Member(name="parse_args" | "parse_known_args"))):
                return self.option_default(name)
        return None

    def option_default(self, name: str) -> int | None:
        """The default of a command-line option with a number."""
        option = self.facts.once(options).get(name)
        return self.count(option.default) if option and option.default is not None else None

    def is_none(self, node: Node, context: Context = ()) -> bool:
        origins = self.calls.origins(node, context)
        return bool(origins) and all(map(is_none, origins))


def name_of(call: nodes.Call) -> str:
    """The name or attribute that is given what ``call`` makes, "" where there is none."""
    index: int | None = None
    for child, parent in ancestors(call):
        if isinstance(parent, nodes.Assign | nodes.AnnAssign):
            target: object = (
                parent.targets[0] if isinstance(parent, nodes.Assign) else parent.target
            )
            if child is not parent.value:
                return ""
            if index is not None:
                elements = target.elts if isinstance(target, nodes.Tuple | nodes.List) else []
                target = elements[index] if index < len(elements) else None
            if isinstance(target, nodes.AssignName | nodes.AssignAttr):
                return str(target.as_string())
            return ""
        if isinstance(parent, nodes.Tuple) and index is None:
            index = next(i for i, one in enumerate(parent.elts) if one is child)
        elif not isinstance(parent, nodes.IfExp):
            return ""
    return ""
