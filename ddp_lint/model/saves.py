"""Layer 11, saves: what a program writes to checkpoint files, who writes it, and where to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from astroid import nodes

from ddp_lint.finding import Edit, Fix, Related
from ddp_lint.model.facts import Facts, called_name
from ddp_lint.model.guards import FAR, FIRST, NEXT_NODE, PEER, RANKS
from ddp_lint.model.localizing import attribute_at, named_at
from ddp_lint.model.mending import main_test, rank_test, under_test
from ddp_lint.model.modules import Binding, Unit
from ddp_lint.model.origins import Instance, Made
from ddp_lint.model.paths import Paths, is_on_node_disk
from ddp_lint.model.processes import Place, has_one_node
from ddp_lint.model.several import only_if_launched
from ddp_lint.model.tree import (
    Node,
    ancestors,
    dotted,
    elements,
    entries,
    is_within,
    precedes,
    source,
    walk,
)
from ddp_lint.model.wrappers import bindings_of, inner_of, kind

#: Where the object and the path stand among the arguments.
_SAVES: dict[str, tuple[int, int]] = {
    "torch.save": (0, 1),
    "torch.jit.save": (0, 1),
    "safetensors.torch.save_file": (0, 1),
    "safetensors.torch.save_model": (0, 1),
}
#: Of these only what looks like a checkpoint counts; they write everything else too.
_DUMPS: dict[str, tuple[int, int]] = {
    "pickle.dump": (0, 1),
    "joblib.dump": (0, 1),
    "numpy.save": (1, 0),
    "numpy.savez": (1, 0),
}
_KEYWORDS = {0: ("obj", "tensors", "model", "value"), 1: ("f", "filename", "file")}
_OF_SAMPLES = frozenset({"__getitem__", "__iter__", "__next__", "collate_fn"})
_DEEPEST = 8
#: What tells the name of a file, and what writes to it once more.
_TELLING = re.compile(r"(^|\.)(print\w*|log|info|debug|warning|format|save\w*)$")


@dataclass(frozen=True)
class Save(Place):
    """A call that writes ``value`` to ``path``; both as the call says them."""

    value: Node | None
    path: Node | None

    @property
    def path_text(self) -> str:
        return source(self.path) if self.path is not None else "the file"

    @cached_property
    def is_local(self) -> bool:
        """Whether it is known that processes write different files, or might."""
        return self.path is not None and Paths(self.facts, unknown=True).may_differ(self.path)

    @cached_property
    def _differs_for_certain(self) -> bool:
        """As ``is_local``, where a guard says already that one writer is meant."""
        return self.path is not None and Paths(self.facts, unknown=False).may_differ(self.path)

    @cached_property
    def is_of_samples(self) -> bool:
        """A cache that a dataset keeps, one file for each sample."""
        return any(unit.name in _OF_SAMPLES for unit in _callers(self.facts, self.unit))

    @property
    def by_all(self) -> bool:
        """Every rank writes it, and all of them write the same file."""
        return (
            self.on_every_rank
            and not self.is_local
            and not self.is_of_samples
            and not self.is_handed_on
        )

    @property
    def is_handed_on(self) -> bool:
        """``super().save_pretrained(path)`` in the method of that name: who calls it saves."""
        func = getattr(self.node, "func", None)
        return (
            isinstance(func, nodes.Attribute)
            and func.attrname == self.unit.name
            and isinstance(func.expr, nodes.Call)
            and dotted(func.expr.func) == "super"
        )

    @property
    def only_if_launched(self) -> bool:
        """Whether somebody may well start the program as one process."""
        return only_if_launched(self.facts)

    @property
    def by_one_of_each_node(self) -> bool:
        """The first rank of every node writes it, to a path that all nodes share."""
        who = self.audience
        return (
            who.by(NEXT_NODE) is True
            and who.by(FIRST) is True
            and who.by(PEER) is False
            and who.by(FAR) is False
            and not self._differs_for_certain
            and not self.on_node_disk
            and not self.facts.once(has_one_node)
        )

    @property
    def by_one(self) -> bool:
        return self.audience.one or (
            self.audience.by(PEER) is False and self.audience.by(FIRST) is not False
        )

    @cached_property
    def on_node_disk(self) -> bool:
        """Whether the path names a place that each node has for itself."""
        return is_on_node_disk(self.facts, self.path)

    @cached_property
    def parts(self) -> tuple[Node, ...]:
        """The expressions that the saved value is made of."""
        return tuple(parts(self.facts, self.value))

    @cached_property
    def is_of_weights(self) -> bool:
        """Whether a model's or an optimizer's state is in it."""
        return any(holds_state(self.facts, part) for part in self.parts)

    @property
    def guarding(self) -> Fix | None:
        """The save below a test for the first rank, where that can be written."""
        test = main_test(self.facts, self.node)
        if test is None or not is_within(self.path or self.node, self.node):
            return None
        if self._is_read_back:
            return None  # the others would have to wait for the file
        edits = under_test(self.facts, self.node, test)
        return Fix("Save on the first rank only", edits, safe=False) if edits else None

    @property
    def _is_read_back(self) -> bool:
        """Whether the name of the file goes on to somebody after the save, other than as text."""
        if not isinstance(self.path, nodes.Name):
            return False
        return any(
            isinstance(use, nodes.Name)
            and use.name == self.path.name
            and precedes(self.node, use)
            and not is_within(use, self.node)
            and not _is_told(use)
            for use in walk(self.unit.node)
        )

    @property
    def globalizing(self) -> Fix | None:
        """The test asking for the rank in the whole job, where that is one replacement."""
        edits = tuple(_globalized(self.facts, self.guard)) if self.guard is not None else ()
        return Fix("Ask for the global rank", edits, safe=False) if len(edits) == 1 else None

    @property
    def guards(self) -> tuple[Related, ...]:
        """The test that lets some ranks through, and the calls between it and the save."""
        found = []
        if self.guard is not None:
            found.append(self.facts.related(self.guard, "this test lets them through"))
            found.extend(_answers(self.facts, self.guard))
        site = self.audience.site
        if site is not None:
            found.append(
                self.facts.related(site.call, f"`{called_name(site.call)}` is called here")
            )
        return tuple(found)


def _answers(facts: Facts, test: Node) -> Iterator[Related]:
    """The functions of the project that a guard asks."""
    for node in walk(test):
        if isinstance(node, nodes.Call):
            for unit in facts.graph.targets_of(node):
                if unit.is_function:
                    yield facts.related(unit.node, f"`{called_name(node)}` answers")


def saves(facts: Facts) -> tuple[Save, ...]:
    """Every call that writes a checkpoint to a file."""
    return facts.once(_found_saves)


def _found_saves(facts: Facts) -> tuple[Save, ...]:
    return tuple(_find_saves(facts))


def _find_saves(facts: Facts) -> Iterator[Save]:
    for call, _ in facts.calls:
        names = facts.names(call)
        save = None
        for name in names:
            if name in _SAVES:
                save = _save(facts, call, *_SAVES[name])
            elif name in _DUMPS:
                save = _save(facts, call, *_DUMPS[name])
                save = save if save is not None and save.is_of_weights else None
        if save is not None:
            yield save
        elif (
            isinstance(call.func, nodes.Attribute)
            and call.func.attrname == "save_pretrained"
            and _is_plain_export(facts, call)
        ):
            path = call.args[0] if call.args else call.keywords[0].value
            yield Save(facts, call, call.func.expr, path)


def _is_plain_export(facts: Facts, call: nodes.Call) -> bool:
    """``save_pretrained`` of what no framework shards, and without an argument that guards it."""
    if not call.args and not call.keywords:
        return False
    if any(k.arg in ("is_main_process", "save_function", None) for k in call.keywords):
        return False
    func = call.func
    assert isinstance(func, nodes.Attribute)
    around = [func.expr, inner_of(facts, func.expr)]
    sharding = {"prepared", "fabric", "engine", "fsdp"}
    return not any(
        kind(facts, origin) in sharding
        for node in around
        if node is not None
        for origin in facts.origins(node)
    )


def _save(facts: Facts, call: nodes.Call, value_at: int, path_at: int) -> Save | None:
    value = _argument(call, value_at, _KEYWORDS[0])
    path = _argument(call, path_at, _KEYWORDS[1])
    if value is None or path is None:
        return None
    opened = _opened(facts, path)
    return Save(facts, call, value, opened) if opened is not None else None


def _argument(call: nodes.Call, index: int, names: tuple[str, ...]) -> Node | None:
    for keyword in call.keywords:
        if keyword.arg in names:
            return keyword.value
    return call.args[index] if index < len(call.args) else None


def _opened(facts: Facts, path: Node) -> Node | None:
    """The path behind a file object; None for what is no file of this machine, or unknown."""
    made = [o for o in facts.origins(path) if isinstance(o, Made)]
    for origin in made:
        if origin.name == "builtins.open":
            return origin.call.args[0] if origin.call.args else None
        if origin.name.endswith((".BytesIO", ".open", ".Popen", ".OpenFile", ".fdopen")):
            return None
    if isinstance(path, nodes.Name):
        for binding, _ in bindings_of(facts, path):
            if binding.path[-1:] == ("enter",) and isinstance(binding.value, nodes.Call):
                if dotted(binding.value.func) == "open" and binding.value.args:
                    return binding.value.args[0]
                return None
    return path


# -- what is saved ----------------------------------------------------------------------------


def parts(
    facts: Facts, node: Node | None, seen: set[int] | None = None, depth: int = 0
) -> Iterator[Node]:
    """The expressions that a value is made of, through names, dictionaries and helpers."""
    seen = set() if seen is None else seen
    if node is None or id(node) in seen or depth > _DEEPEST:
        return
    seen.add(id(node))
    match node:
        case nodes.Dict():
            for _, value in entries(node):
                yield from parts(facts, value, seen, depth + 1)
        case nodes.List() | nodes.Tuple():
            for element in elements(node):
                yield from parts(facts, element, seen, depth + 1)
        case nodes.IfExp():
            yield from parts(facts, node.body, seen, depth + 1)
            yield from parts(facts, node.orelse, seen, depth + 1)
        case nodes.DictComp():
            renamed = _same_names(node)
            if renamed is not None:
                yield from parts(facts, renamed, seen, depth + 1)
            else:
                yield node
        case nodes.Name():
            yield from _parts_of_name(facts, node, seen, depth)
        case nodes.Attribute():
            yield from _parts_of_attribute(facts, node, seen, depth)
        case nodes.Call():
            yield from _parts_of_call(facts, node, seen, depth)
        case _:
            yield node


def _parts_of_name(facts: Facts, node: nodes.Name, seen: set[int], depth: int) -> Iterator[Node]:
    found = False
    for binding, unit in bindings_of(facts, node):
        if binding.path == ("param",):
            for site in facts.graph.sites_of(unit):
                given = facts.graph.given(site, unit, binding.name)
                if given is not None:
                    found = True
                    yield from parts(facts, given, seen, depth + 1)
        elif not binding.path and binding.value is not None:
            found = True
            yield from parts(facts, binding.value, seen, depth + 1)
    unit = facts.values.unit_of(node)
    for store in unit.subscript_stores:
        if (
            isinstance(store.value, nodes.Name)
            and store.value.name == node.name
            and isinstance(store.parent, nodes.Assign)
        ):
            found = True
            yield from parts(facts, store.parent.value, seen, depth + 1)
    if not found or facts.roles_of(node):
        yield node


def _parts_of_attribute(
    facts: Facts, node: nodes.Attribute, seen: set[int], depth: int
) -> Iterator[Node]:
    found = False
    if not facts.roles_of(node):
        for origin in facts.values.of(node.expr):
            if isinstance(origin, Instance):
                for cls in facts.values.mro(origin.cls):
                    for _, binding in cls.attributes.get(node.attrname, ()):
                        if binding.value is not None and not binding.path:
                            found = True
                            yield from parts(facts, binding.value, seen, depth + 1)
    if not found:
        yield node


def _parts_of_call(facts: Facts, node: nodes.Call, seen: set[int], depth: int) -> Iterator[Node]:
    name = dotted(node.func).rpartition(".")[2]
    if name in ("dict", "OrderedDict"):
        for given in [*node.args, *(k.value for k in node.keywords)]:
            yield from parts(facts, given, seen, depth + 1)
        return
    if name == "copy" or name == "deepcopy":
        inside = node.args[0] if node.args else getattr(node.func, "expr", None)
        yield from parts(facts, inside, seen, depth + 1)
        return
    entered = [u for u in facts.graph.targets_of(node) if u.is_function and u.name != "__init__"]
    if not entered or name == "state_dict":
        yield node
        return
    for unit in entered:
        for statement in unit.returns:
            value = statement.value if isinstance(statement, nodes.Return) else statement
            yield from parts(facts, value, seen, depth + 1)


def _same_names(node: nodes.DictComp) -> Node | None:
    """The dictionary whose names this one has: ``d`` of ``{k: f(v) for k, v in d.items()}``."""
    generator = node.generators[0]
    items = generator.iter
    if (
        isinstance(items, nodes.Call)
        and isinstance(items.func, nodes.Attribute)
        and items.func.attrname == "items"
        and isinstance(node.key, nodes.Name)
        and isinstance(generator.target, nodes.Tuple)
        and isinstance(generator.target.elts[0], nodes.AssignName)
        and generator.target.elts[0].name == node.key.name
    ):
        return items.func.expr
    return None


def holds_state(facts: Facts, part: Node) -> bool:
    if isinstance(part, nodes.Call) and dotted(part.func).endswith("state_dict"):
        return True
    roles = {"module", "ddp", "dp", "fsdp", "optimizer", "scaler", "prepared module", "ema"}
    return bool(facts.roles_of(part) & roles)


# -- who, and how to ask ----------------------------------------------------------------------


def _callers(facts: Facts, unit: Unit) -> Iterator[Unit]:
    todo, seen = [unit], set()
    while todo:
        at = todo.pop()
        if id(at) in seen:
            continue
        seen.add(id(at))
        yield at
        todo.extend(site.caller for site in facts.graph.sites_of(at))
        if at.outer is not None and at.outer.is_function:
            todo.append(at.outer)


def _is_told(use: Node) -> bool:
    """Whether a path is printed, logged, made part of a text, or written to again."""
    return isinstance(use.parent, nodes.FormattedValue) or any(
        isinstance(parent, nodes.Call) and _TELLING.search(dotted(parent.func))
        for _, parent in ancestors(use)
    )


def _globalized(facts: Facts, test: Node) -> Iterator[Edit]:
    """``local_rank == 0`` as ``dist.get_rank() == 0``, ``rank % gpus == 0`` as ``rank == 0``."""
    for node in walk(test):
        if isinstance(node, nodes.Attribute) and node.attrname == "is_local_main_process":
            yield facts.replace(node, f"{node.expr.as_string()}.is_main_process")
        elif isinstance(node, nodes.Compare) and len(node.ops) == 1:
            op, right = node.ops[0]
            if (
                op == "=="
                and isinstance(right, nodes.Const)
                and right.value == 0
                and _is_local_rank(facts, node.left)
            ):
                yield from _of_the_job(facts, node)


def _of_the_job(facts: Facts, compare: nodes.Compare) -> Iterator[Edit]:
    left = compare.left
    if isinstance(left, nodes.BinOp) and left.op == "%" and _is_global_rank(facts, left.left):
        yield facts.replace(left, left.left.as_string())
        return
    held = named_at(facts, compare, _holds_global_rank) or attribute_at(
        facts, compare, _holds_global_rank
    )
    asked = f"{held} == 0" if held is not None else rank_test(facts, compare)
    if asked is not None:
        alone = " or " not in asked or isinstance(compare.parent, nodes.If | nodes.IfExp)
        yield facts.replace(compare, asked if alone else f"({asked})")


def _holds_global_rank(facts: Facts, binding: Binding) -> bool:
    """Whether a number is bound that is the rank in the job, and 0 where it is not told."""
    value = binding.value
    if binding.path or not isinstance(value, nodes.Call) or not _is_global_rank(facts, value):
        return False
    asked = [call for call in walk(value) if isinstance(call, nodes.Call)]
    defaults = [a for c in asked for a in (*c.args[1:], *(k.value for k in c.keywords))]
    return all(str(getattr(one, "value", None)) == "0" for one in defaults)


def _is_global_rank(facts: Facts, node: Node) -> bool:
    return all(facts.guards.value(node, rank) == rank.global_ for rank in RANKS)


def _is_local_rank(facts: Facts, node: Node) -> bool:
    return all(facts.guards.value(node, rank) == rank.local for rank in RANKS)
