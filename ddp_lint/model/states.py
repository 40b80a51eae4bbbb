"""Layer 12, states: checkpoints that hold a wrapper's names, and where files are read back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from astroid import nodes

from ddp_lint.finding import Edit, Fix, Level, Related
from ddp_lint.model.facts import Facts, Spot
from ddp_lint.model.flow import reaching
from ddp_lint.model.modules import Module, Unit
from ddp_lint.model.origins import Item, Made, Member, Origin, Param, Result, Unknown, inner
from ddp_lint.model.processes import Place
from ddp_lint.model.saves import Save, parts, saves
from ddp_lint.model.story import Story
from ddp_lint.model.tree import Node, ancestors, dotted, source, walk, walk_scope
from ddp_lint.model.wrappers import bindings_of, inner_of, is_certain, is_wrapper, wrappings

#: What puts ``module.`` before every name.  (Fabric takes it off by itself.)
PREFIXING = frozenset({"ddp", "dp", "prepared"})
WRAPPING = frozenset({"ddp", "dp", "fsdp", "prepared", "engine", "fabric"})
_LOADS = frozenset({"torch.load", "torch.jit.load", "safetensors.torch.load_file"})
_STRIPPING = frozenset({"replace", "removeprefix", "startswith", "lstrip", "sub", "split"})


@dataclass(frozen=True)
class Load(Place):
    """A call of ``torch.load``."""

    @property
    def call(self) -> nodes.Call:
        assert isinstance(self.node, nodes.Call)
        return self.node

    @property
    def path(self) -> Node | None:
        named = [k.value for k in self.call.keywords if k.arg in ("f", "filename")]
        return named[0] if named else next(iter(self.call.args), None)

    @property
    def path_text(self) -> str:
        return source(self.path) if self.path is not None else "the file"


@dataclass(frozen=True)
class Restore(Spot):
    """``target.load_state_dict(state)``."""

    target: Node
    state: Node

    @cached_property
    def loads(self) -> list[tuple[nodes.Call, str | None]]:
        """The ``torch.load`` calls that the state may come from, with the key taken from it."""
        return list(_loads_of(self.facts, self.state, 0))

    @property
    def is_unknown(self) -> bool:
        """Whether it cannot be told what is loaded into."""
        origins = self.facts.origins(self.target)
        return not origins or any(
            isinstance(part, Param | Unknown) for origin in origins for part in inner(origin)
        )

    @property
    def into_plain_model(self) -> bool:
        """Whether the target certainly is a model that nothing wraps."""
        origins = self.facts.origins(self.target)
        roles = self.facts.roles_of(self.target)
        return bool(origins) and roles <= {"module"} and bool(roles)

    @cached_property
    def is_strict(self) -> bool:
        call = self.node
        assert isinstance(call, nodes.Call)
        given = [k.value for k in call.keywords if k.arg == "strict"] or call.args[1:2]
        return not any(isinstance(g, nodes.Const) and g.value is False for g in given)

    @property
    def is_looked_at(self) -> bool:
        """Whether the program reads which names did not match."""
        return not isinstance(self.node.parent, nodes.Expr)


def _loads_of(facts: Facts, state: Node, depth: int) -> Iterator[tuple[nodes.Call, str | None]]:
    for part in parts(facts, state):
        if isinstance(part, nodes.DictComp) and depth < 4:
            items = part.generators[0].iter
            base = getattr(getattr(items, "func", None), "expr", items)
            yield from _loads_of(facts, base, depth + 1)
            continue
        for origin in facts.origins(part):
            key: str | None = None
            for at in inner(origin):
                if isinstance(at, Item) and isinstance(at.how, str):
                    key = at.how
                elif isinstance(at, Made) and at.name in _LOADS:
                    yield at.call, key


def restores(facts: Facts) -> Iterator[Restore]:
    for call, _ in facts.calls:
        func = call.func
        if isinstance(func, nodes.Attribute) and func.attrname == "load_state_dict":
            given = [*call.args, *(k.value for k in call.keywords if k.arg == "state_dict")]
            if given:
                yield Restore(facts, call, func.expr, given[0])


def loads(facts: Facts) -> Iterator[Load]:
    for call, _ in facts.calls_to({"torch.load"}):
        yield Load(facts, call)


# -- the prefix -------------------------------------------------------------------------------


@dataclass(frozen=True)
class WrappedState(Spot):
    """The state of ``wrapper``, or the wrapper itself, on its way into a file."""

    save: Save
    wrapper: Node
    restores: tuple[Restore, ...]

    @property
    def wrapper_text(self) -> str:
        return source(self.wrapper)

    @property
    def is_whole(self) -> bool:
        """Whether the wrapper itself is pickled."""
        return self.node is self.wrapper

    @cached_property
    def wrappings(self) -> list[Origin]:
        """What wraps it; not what a program wraps only later, to be able to load it."""
        found = wrappings(self.facts, self.wrapper, PREFIXING)
        story = self.facts.once(Story)
        return [
            origin
            for origin in found
            if not isinstance(origin, Made)
            or not isinstance(self.save.node, nodes.Call)
            or story.comes_before(origin.call, self.save.node) is not False
        ] or found

    @cached_property
    def is_resumed(self) -> bool:
        """Whether the program loads into the same wrapper, or into something unknown."""
        return any(
            restore.is_unknown
            or (
                inner_of(self.facts, restore.target) is None
                and set(wrappings(self.facts, restore.target, PREFIXING)) & set(self.wrappings)
            )
            for restore in self.restores
        )

    @cached_property
    def failing_load(self) -> Restore | None:
        """Where the program loads this state into a model without the wrapper."""
        for restore in self.restores:
            if restore.into_plain_model and any(
                self.is_read_by(call, key) for call, key in restore.loads
            ):
                return restore
        return None

    def is_read_by(self, call: nodes.Call, key: str | None) -> bool:
        """Whether a load reads what is saved here: the same file, or the same entry of one."""
        if key != self.key:
            return False
        path = Load(self.facts, call).path
        if (
            path is not None
            and self.save.path is not None
            and path.as_string() == self.save.path.as_string()
        ):
            return True
        return key is not None and not isinstance(path, nodes.Const)

    @cached_property
    def key(self) -> str | None:
        """The entry of the checkpoint that this is."""
        parent = self.node.parent
        if isinstance(parent, nodes.Dict):
            for name, value in parent.items:
                if value is self.node and isinstance(name, nodes.Const):
                    return str(name.value)
        if isinstance(parent, nodes.Keyword):
            return str(parent.arg)
        if isinstance(parent, nodes.Assign) and isinstance(parent.targets[0], nodes.Subscript):
            key = parent.targets[0].slice
            return str(key.value) if isinstance(key, nodes.Const) else None
        return None

    @property
    def level(self) -> Level:
        return "error" if self.failing_load is not None else "warning"

    @property
    def places(self) -> tuple[Related, ...]:
        """Where it is wrapped, written, and read by a model without the wrapper."""
        found = [
            self.facts.related(origin.call, "it is wrapped here")
            for origin in self.wrappings
            if isinstance(origin, Made | Result)
        ]
        if self.save.node is not self.node and not self._is_inside_save:
            found.append(self.facts.related(self.save.node, "it is written here"))
        if self.failing_load is not None:
            found.append(self.facts.related(self.failing_load.node, "this load fails"))
        return tuple(found)

    @property
    def _is_inside_save(self) -> bool:
        return any(parent is self.save.node for _, parent in ancestors(self.node))

    @cached_property
    def unwrapping(self) -> Fix | None:
        """``.module`` after the wrapper, where nothing reads the file as it is."""
        if not is_certain(self.facts, self.wrapper, frozenset({"ddp", "dp"})):
            return None
        for load in loads(self.facts):
            if not isinstance(load.path, nodes.Const) or not isinstance(
                self.save.path, nodes.Const
            ):
                return None
            if load.path.value == self.save.path.value:
                return None
        end = self.facts.exact(self.wrapper)
        file = self.facts.values.module_of(self.wrapper).source
        line = self.wrapper.end_lineno or self.wrapper.lineno or 1
        place = file.place(
            line, self.wrapper.end_col_offset or 0, line, self.wrapper.end_col_offset or 0
        )
        assert end.end_line == place.line
        return Fix("Save the model inside the wrapper", (Edit(place, ".module"),), safe=True)


def wrapped_states(facts: Facts) -> Iterator[WrappedState]:
    """States of wrappers that the program writes; none where it strips the prefix again."""
    found: dict[int, WrappedState] = {}
    every: tuple[Restore, ...] | None = None
    for save in saves(facts):
        if isinstance(save.node, nodes.Call) and dotted(save.node.func).endswith(
            "save_pretrained"
        ):
            continue
        for part in save.parts:
            wrapper = wrapper_of(facts, part)
            if wrapper is not None and id(part) not in found:
                if every is None:
                    every = tuple(restores(facts))
                found[id(part)] = WrappedState(facts, part, save, wrapper, every)
    for state in found.values():
        if not strips_prefix(facts, state.save.unit) and not _is_for_its_names(state):
            yield state


def _is_for_its_names(state: WrappedState) -> bool:
    """Whether a model is wrapped where it is saved, and nothing else is done with the wrapper:
    who does that wants the prefix, for those who read the file."""
    name, unit = state.wrapper, state.facts.values.unit_of(state.node)
    if not isinstance(name, nodes.Name) or not is_wrapper(state.facts, name, frozenset({"dp"})):
        return False
    made = [b for b in reaching(unit, name.name, name) if isinstance(b.value, nodes.Call)]
    if len(made) != 1 or made[0].path:
        return False
    uses = [
        node
        for node in walk_scope(unit.node)
        if isinstance(node, nodes.Name) and node.name == name.name
    ]
    return all(
        getattr(node.parent, "attrname", "") == "state_dict"
        for node in uses
        if any(binding is made[0] for binding in reaching(unit, name.name, node))
    )


def wrapper_of(facts: Facts, part: Node) -> Node | None:
    if isinstance(part, nodes.Call):
        func = part.func
        if isinstance(func, nodes.Attribute) and func.attrname == "state_dict":
            return func.expr if is_wrapper(facts, func.expr, PREFIXING) else None
        return None
    return part if is_wrapper(facts, part, PREFIXING) else None


def strips_prefix(facts: Facts, beside: Unit) -> bool:
    """Whether the program of ``beside`` takes ``module.`` off names that it reads somewhere."""
    return any(
        _strips(facts, node) and not facts.ranks.are_apart(facts.values.unit_of(node), beside)
        for module in facts.modules
        for node in _strippers(module)
    )


def _strippers(module: Module) -> list[Node]:
    """Expressions that take a prefix off a name, in one file."""
    raw = module.source.raw
    if b"module" not in raw and b"[7:]" not in raw and b"split(" not in raw:
        return []
    return [node for unit in module.units for node in unit.calls if _is_stripper(node)] + [
        node
        for node in (walk(module.tree) if b"[7:]" in raw else ())
        if isinstance(node, nodes.Subscript)
        and isinstance(node.slice, nodes.Slice)
        and isinstance(node.slice.lower, nodes.Const)
        and node.slice.lower.value == 7
    ]


def _is_stripper(node: nodes.Call) -> bool:
    name = dotted(node.func).rpartition(".")[2] or getattr(node.func, "attrname", "")
    if "consume_prefix" in name or "strip_prefix" in name or "remove_module" in name:
        return True
    if name not in _STRIPPING:
        return False
    texts = [a.value for a in node.args if isinstance(a, nodes.Const) and isinstance(a.value, str)]
    return any("module" in text for text in texts) or (name == "split" and texts[:1] == ["."])


def _strips(facts: Facts, node: Node) -> bool:
    """Not where the names are those of a model's own ``state_dict()``."""
    unit = facts.values.unit_of(node)
    if unit not in facts.units:
        return False
    for name in walk(node):
        if not isinstance(name, nodes.Name):
            continue
        for binding, _ in bindings_of(facts, name):
            value = binding.value
            if binding.path[:1] == ("iter",) and isinstance(value, nodes.Call):
                base = getattr(value.func, "expr", value)
                if any(_is_state(part) for part in parts(facts, base)):
                    return False
    return True


def _is_state(part: Node) -> bool:
    return isinstance(part, nodes.Call) and dotted(part.func).endswith("state_dict")


def holds_member(origin: Origin, name: str) -> bool:
    return any(isinstance(at, Member) and at.name == name for at in inner(origin))
