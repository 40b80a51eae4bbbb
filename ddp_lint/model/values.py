"""Layer 3, values: the origins of an expression, by following names, attributes and calls.

Answers here are symbolic: a parameter stays a parameter.  They hold in every program that
contains the code, are computed once, and are filled in for one program by ``calls.py``.
"""

from __future__ import annotations

import builtins
from collections import defaultdict
from collections.abc import Iterator

from astroid import nodes

from ddp_lint.model.codebase import CodeBase
from ddp_lint.model.flow import bindings_for, reaching
from ddp_lint.model.modules import Binding, Class, Module, Unit, method_around
from ddp_lint.model.origins import (
    NOTHING,
    Api,
    Code,
    Expression,
    File,
    Folder,
    Instance,
    Item,
    Made,
    Member,
    Origin,
    Origins,
    Param,
    Result,
    Type,
    Unknown,
    is_deeper,
)
from ddp_lint.model.passing import argument_for
from ddp_lint.model.torch_api import EXTERNAL, ROLES, SAME_OBJECT, WRAPPERS
from ddp_lint.model.tree import Node, elements, entries

MOST_ORIGINS = 24
DEEPEST = 9

_BUILTINS = frozenset(dir(builtins))
#: Calls that hand on their first argument, changed perhaps but the same thing to a program.
_SAME_AS_ARGUMENT = frozenset(
    {
        "torch.compile",
        "torch.jit.script",
        "torch.nn.SyncBatchNorm.convert_sync_batchnorm",
        "apex.parallel.convert_syncbn_model",
        "copy.deepcopy",
        "copy.copy",
        "builtins.iter",
        "builtins.list",
        "builtins.tuple",
        "builtins.reversed",
        "tqdm.tqdm",
        "tqdm.auto.tqdm",
        "tqdm.notebook.tqdm",
        "tqdm.autonotebook.tqdm",
        "tqdm.std.tqdm",
        "tqdm.rich.tqdm",
        "itertools.islice",
        "itertools.cycle",
    }
)
#: Lists of layers, made of another list.
_LISTS = frozenset({"torch.nn.ModuleList", "torch.nn.modules.container.ModuleList"})
_APEX_INITIALIZE = frozenset({"apex.amp.initialize", "apex.amp.frontend.initialize"})


class Values:
    """The origins of every expression of a code base."""

    def __init__(self, codebase: CodeBase) -> None:
        self.codebase = codebase
        self._of: dict[int, Origins] = {}
        self._busy: set[int] = set()
        self._names: dict[int, frozenset[str]] = {}
        self._imported: dict[int, tuple[Origin, ...]] = {}
        self._returns: dict[int, Origins] = {}
        self._modules: dict[int, Module] = {}
        self._units: dict[int, Unit] = {}
        self._mro: dict[int, list[Class]] = {}
        self.subclasses: dict[int, list[Class]] = {}
        self._outside: dict[str, list[tuple[Unit, nodes.Name, Binding]]] = defaultdict(list)
        #: Once set, which classes override what, and what is stored in their objects from
        #: outside, no longer depends on what is loaded when.
        self.settled = False
        self.names_defined = codebase.names_defined

    # -- where a node lies ------------------------------------------------------------------

    def learn(self, module: Module) -> None:
        """Make the nodes of ``module`` known, and its classes to the classes above them."""
        if id(module.tree) in self._modules:
            return
        self._modules[id(module.tree)] = module
        if not self.settled:
            for name, stores in module.outside_stores.items():
                self._outside[name].extend(stores)

    def module_of(self, node: Node) -> Module:
        return self._modules[id(node.root())]

    def unit_of(self, node: Node) -> Unit:
        found = self._units.get(id(node))
        if found is None:
            found = self._units[id(node)] = self.module_of(node).unit_of(node)
        return found

    def load(self, key: str | None) -> Module | None:
        if key is None:
            return None
        module = self.codebase.module(key)
        if module is not None:
            self.learn(module)
        return module

    # -- expressions ------------------------------------------------------------------------

    def of(self, node: Node | None) -> Origins:
        """Every origin of the value of ``node``; empty only for an endless circle."""
        if node is None:
            return NOTHING
        key = id(node)
        known = self._of.get(key)
        if known is not None:
            return known
        if key in self._busy:
            return NOTHING
        self._busy.add(key)
        try:
            found = frozenset(self._origins(node))
        except RecursionError:
            found = frozenset({Unknown(node)})
        finally:
            self._busy.discard(key)
        if len(found) > MOST_ORIGINS:
            found = frozenset({*list(found)[:MOST_ORIGINS], Unknown(node)})
        if not self._busy or found:
            self._of[key] = found
        return found

    def names_called(self, call: nodes.Call) -> frozenset[str]:
        """Qualified names of what is called, where it is outside the project."""
        known = self._names.get(id(call))
        if known is None:
            known = self._names[id(call)] = frozenset(
                o.name for o in self.of(call.func) if isinstance(o, Api | Folder)
            )
        return known

    def _origins(self, node: Node) -> Iterator[Origin]:
        match node:
            case nodes.Name():
                yield from self.lookup(node.name, node)
            case nodes.Attribute():
                for base in self.of(node.expr):
                    yield from self.member(base, node.attrname, node)
            case nodes.Call():
                for func in self.of(node.func):
                    yield from self.called(func, node)
            case nodes.IfExp():
                yield from self.of(node.body)
                yield from self.of(node.orelse)
            case nodes.BoolOp():
                for value in node.values:
                    yield from self.of(value)
            case nodes.NamedExpr() | nodes.Await() | nodes.Starred():
                yield from self.of(node.value)
            case nodes.Subscript(slice=nodes.Slice()):
                yield from self.of(node.value)  # a part of a list is a list
            case nodes.Subscript():
                key = node.slice
                how = key.value if isinstance(key, nodes.Const) else "item"
                if not isinstance(how, int | str):
                    how = "item"
                for base in self.of(node.value):
                    yield from self.item(base, how)
            case _:
                yield Expression(node)

    # -- names ------------------------------------------------------------------------------

    def lookup(self, name: str, use: Node) -> Iterator[Origin]:
        unit: Unit | None = self.unit_of(use)
        first = unit
        while unit is not None:
            if unit.outer is None and unit is not first:
                break  # a global: functions may set it as well
            if name in unit.bindings and name not in unit.globals:
                bindings = reaching(unit, name, use) if unit is first else unit.bindings[name]
                for binding in bindings:
                    yield from self.bound(binding, unit)
                return
            unit = unit.outer
        yield from self.global_(self.module_of(use), name, use)

    def global_(self, module: Module, name: str, use: Node) -> Iterator[Origin]:
        """A name of a module: its own, of a star import, or a builtin."""
        found = list(self.exported(module, name, set()))
        if found:
            yield from found
        elif name in _BUILTINS:
            yield Api(f"builtins.{name}")
        else:
            yield Unknown(use)

    def exported(self, module: Module, name: str, seen: set[str]) -> Iterator[Origin]:
        """What ``module.name`` is; nothing where the module has no such name."""
        if module.key in seen:
            return
        seen.add(module.key)
        bindings = module.body.bindings.get(name, [])
        for unit in module.units:
            if name in unit.globals:
                bindings = [*bindings, *unit.bindings.get(name, [])]
        if bindings:
            for binding in bindings:
                yield from self.bound(binding, module.body)
            return
        for star in module.stars:
            key = self.codebase.target(star, module.key)
            if key is None or not self.codebase.may_define(key, name):
                continue
            target = self.load(key)
            if target is not None:
                found = list(self.exported(target, name, seen))
                if found:
                    yield from found
                    return
        inside = self.load(self.codebase.submodule(module, name))
        if inside is not None:
            yield File(inside)
            return
        for star in module.stars:
            external = star.module.partition(".")[0]
            if external in EXTERNAL and f"{star.module}.{name}" in ROLES:
                yield Api(f"{star.module}.{name}")
                return

    def bound(self, binding: Binding, unit: Unit) -> Iterator[Origin]:
        """What one binding gives."""
        if binding.path == ("import",):
            known = self._imported.get(id(binding))
            if known is None:
                known = self._imported[id(binding)] = tuple(self.imported(unit.module, binding))
            yield from known
        elif binding.path == ("param",):
            yield from self.parameter(unit, binding.name)
        elif binding.value is None:
            yield Unknown(binding.node)
        elif isinstance(binding.value, nodes.FunctionDef):
            yield Code(unit.module.unit_of_node[id(binding.value)])
        elif isinstance(binding.value, nodes.ClassDef):
            yield Type(self.class_of(unit.module, binding.value))
        elif binding.path == ("aug",):
            yield Expression(binding.value)
        else:
            found = self.of(binding.value)
            for step in binding.path:
                if step != "enter":
                    found = frozenset(o for base in found for o in self.item(base, step))
            yield from found

    def parameter(self, unit: Unit, name: str) -> Iterator[Origin]:
        if unit.owner is not None and name == unit.self_name:
            if "classmethod" in unit.decorator_names:
                yield Type(unit.owner)
            else:
                yield Instance(unit.owner, None)
        else:
            yield Param(unit, name)

    def class_of(self, module: Module, node: nodes.ClassDef) -> Class:
        return next(c for c in module.classes if c.node is node)

    def imported(self, module: Module, binding: Binding) -> Iterator[Origin]:
        found = module.imports[id(binding)]
        if found.member is None:
            target = self.load(self.codebase.target(found, module.key))
            if target is not None:
                yield File(target)
            elif found.module.partition(".")[0] in EXTERNAL:
                yield Api(found.module)
            else:
                yield Folder(found.module, module.key)
            return
        target = self.load(self.codebase.target(found, module.key))
        if target is not None:
            if target is not module:
                origins = list(self.exported(target, found.member, set()))
                if origins:
                    yield from origins
                    return
            # ``from package import part`` in the package's own ``__init__``.
            part = self.load(self.codebase.submodule(target, found.member))
            yield File(part) if part is not None else Unknown(binding.node)
            return
        dotted = f"{found.module}.{found.member}".lstrip(".")
        inside = self.load(self.codebase.find(dotted, module.key, found.level))
        if inside is not None:
            yield File(inside)
        elif found.level:
            yield Unknown(binding.node)
        else:
            yield Api(dotted)

    # -- attributes -------------------------------------------------------------------------

    def member(self, base: Origin, name: str, node: Node) -> Iterator[Origin]:
        if is_deeper(base, DEEPEST):
            yield Unknown(node)
            return
        match base:
            case Api():
                yield Api(f"{base.name}.{name}")
            case Folder():
                dotted = f"{base.name}.{name}"
                module = self.load(self.codebase.find(dotted, base.importer))
                yield File(module) if module else Api(dotted)
            case File():
                found = list(self.exported(base.module, name, set()))
                yield from found or [Unknown(node)]
            case Type():
                found = list(self.class_member(base.cls, name, base))
                yield from found or [Member(base, name)]
            case Instance():
                found = list(self.class_member(base.cls, name, base))
                yield from found or [Member(base, name)]
            case Made() if name == "module" and ROLES.get(base.name) in WRAPPERS:
                wrapped = base.call.args[:1] or [
                    k.value for k in base.call.keywords if k.arg in ("module", "model")
                ]
                yield from self.of(wrapped[0]) if wrapped else [Unknown(node)]
            case Result(of=Api(name="builtins.super"), call=call):
                method = method_around(self.unit_of(call))
                if method is None or method.owner is None:
                    yield Unknown(node)
                    return
                own = method.owner
                for above in self.mro(own)[1:]:
                    if name in above.methods:
                        yield Code(above.methods[name], Instance(own, None))
                        return
                yield Member(base, name)
            case _:
                yield Member(base, name)

    def class_member(self, cls: Class, name: str, base: Origin) -> Iterator[Origin]:
        """A method or attribute of a class, its bases, and for ``self`` the classes below it."""
        for at in self.mro(cls):
            if name in at.methods:
                yield from self._method(at.methods[name], base)
                break
            if name in at.attributes:
                yield from self._attributes(at, name)
                for above in self.mro(at)[1:]:
                    if name in above.attributes:
                        yield from self._attributes(above, name)
                break
        if isinstance(base, Instance) and base.call is None:
            for below in self.all_below(cls):
                if name in below.methods:
                    yield from self._method(below.methods[name], Instance(below, None))
                elif name in below.attributes:
                    yield from self._attributes(below, name)

    def _method(self, unit: Unit, base: Origin) -> Iterator[Origin]:
        if {"property", "cached_property"} & set(unit.decorator_names):
            yield from self.returns(unit)
        else:
            yield Code(unit, base)

    def _attributes(self, cls: Class, name: str) -> Iterator[Origin]:
        stores = [*cls.attributes[name], *self._stored_outside(cls, name)]
        # ``self.x = None`` first and a value later: the value is what a program works with.
        telling = [s for s in stores if not _is_none(s[1].value)] or stores
        for unit, binding in telling:
            yield from self.bound(binding, unit)

    def _stored_outside(self, cls: Class, name: str) -> Iterator[tuple[Unit, Binding]]:
        """Stores through variables that hold an object of the class: ``worker.chief = True``."""
        for unit, base, binding in self._outside.get(name, ()):
            if any(isinstance(b.value, nodes.Call) for b in bindings_for(base, unit)[0]) and any(
                isinstance(o, Instance) and cls in self.mro(o.cls) for o in self.of(base)
            ):
                yield unit, binding

    def mro(self, cls: Class) -> list[Class]:
        """The class and the project's classes above it, nearest first."""
        known = self._mro.get(id(cls))
        if known is not None:
            return known
        self._mro[id(cls)] = [cls]
        found = [cls]
        for base in base_classes(cls):
            for origin in self.of(base):
                if isinstance(origin, Type):
                    if not self.settled:
                        self.subclasses.setdefault(id(origin.cls), []).append(cls)
                    found.extend(c for c in self.mro(origin.cls) if c not in found)
        self._mro[id(cls)] = found
        return found

    def all_below(self, cls: Class) -> list[Class]:
        found: list[Class] = []
        todo = list(self.subclasses.get(id(cls), []))
        while todo:
            at = todo.pop()
            if at not in found and at is not cls:
                found.append(at)
                todo.extend(self.subclasses.get(id(at), []))
        return found

    def external_bases(self, cls: Class) -> set[str]:
        """Qualified names of the classes outside the project that ``cls`` is derived from."""
        found: set[str] = set()
        for at in self.mro(cls):
            for base in base_classes(at):
                found.update(o.name for o in self.of(base) if isinstance(o, Api))
        return found

    # -- calls ------------------------------------------------------------------------------

    def called(self, func: Origin, call: nodes.Call) -> Iterator[Origin]:
        if is_deeper(func, DEEPEST):
            yield Unknown(call)
            return
        match func:
            case Api(name="builtins.super"):
                yield Result(func, call)
            case Api(name="builtins.getattr") if len(call.args) >= 2 and isinstance(
                call.args[1], nodes.Const
            ):
                for base in self.of(call.args[0]):
                    yield from self.member(base, str(call.args[1].value), call)
            case Api(name=name) if name in _SAME_AS_ARGUMENT and call.args:
                yield from self.of(call.args[0])
            case Api(name=name):
                yield Made(name, call)
            case Folder(name=name):
                yield Made(name, call)
            case Type():
                yield Instance(func.cls, call)
            case Code(unit=unit) if unit.is_generator:
                yield Result(func, call)
            case Code(unit=unit):
                for origin in self.returns(unit):
                    yield from self.substituted(origin, unit, call)
            case Member(of=base, name=name) if name in SAME_OBJECT:
                yield base
            case Member(of=Type(cls=cls), name="remote"):
                yield Instance(cls, call)  # an actor: its methods run elsewhere
            case Member(name="spawn") if spawned := self._classes_given(call):
                for cls in spawned:
                    yield Instance(cls, call)
            case Instance(cls=cls):
                own = [u for at in self.mro(cls) for u in [at.methods.get("__call__")] if u]
                if own:
                    yield from self.called(Code(own[0], func), call)
                else:
                    yield Result(func, call)
            case _:
                yield Result(func, call)

    def _classes_given(self, call: nodes.Call) -> list[Class]:
        """Classes of the project among the arguments: ``mesh.spawn("trainer", Trainer, ...)``."""
        return [
            origin.cls
            for argument in call.args
            if isinstance(argument, nodes.Name | nodes.Attribute)
            for origin in self.of(argument)
            if isinstance(origin, Type)
        ]

    def returns(self, unit: Unit) -> Origins:
        """What a function gives back, in terms of its own parameters."""
        known = self._returns.get(id(unit))
        if known is not None:
            return known
        self._returns[id(unit)] = NOTHING  # while it is being looked at, for recursion
        found: set[Origin] = set()
        for statement in unit.returns:
            value = statement.value if isinstance(statement, nodes.Return) else statement
            if value is not None:
                found.update(self.of(value))
        self._returns[id(unit)] = frozenset(found)
        return self._returns[id(unit)]

    def substituted(self, origin: Origin, unit: Unit, call: nodes.Call) -> Iterator[Origin]:
        """``origin`` as seen by one caller: the unit's parameters replaced by its arguments."""
        match origin:
            case Param() if origin.unit is unit:
                given = argument_for(call, unit, origin.name)
                if given is None:
                    yield origin
                else:
                    yield from self.of(given)
            case Member(of=base, name=name):
                for one in self.substituted(base, unit, call):
                    yield from [origin] if one is base else self.member(one, name, call)
            case Result(of=base, call=made):
                for one in self.substituted(base, unit, call):
                    yield from [origin] if one is base else self.called(one, made)
            case Item(of=base, how=how):
                for one in self.substituted(base, unit, call):
                    yield from [origin] if one is base else self.item(one, how)
            case Expression(node=nodes.Tuple() | nodes.List()):
                yield origin
            case _:
                yield origin

    # -- parts ------------------------------------------------------------------------------

    def item(self, base: Origin, how: int | str) -> Iterator[Origin]:
        if is_deeper(base, DEEPEST):
            node = _node_of(base)
            yield Item(Unknown(node), how) if node else base
            return
        match base, how:
            case Expression(node=nodes.Tuple() | nodes.List() as display), int():
                if -len(display.elts) <= how < len(display.elts):
                    yield from self.of(elements(display)[how])
                else:
                    yield Item(base, how)
            case Expression(node=nodes.Tuple() | nodes.List() as display), _:
                for element in elements(display):
                    yield from self.of(element)
                if not display.elts:
                    yield Item(base, how)  # filled later
            case Made(name=name, call=call), "iter" | "item" | int() if name in _LISTS:
                yield from self._layers(call, how) if call.args else [Item(base, how)]
            case Expression(node=nodes.Dict() as display), "item" | "value" if display.items:
                for _, value in entries(display):
                    yield from self.of(value)
            case Expression(node=nodes.Dict() as display), str() if how != "iter":
                found = [
                    value
                    for key, value in entries(display)
                    if isinstance(key, nodes.Const) and key.value == how
                ]
                for value in found:
                    yield from self.of(value)
                if not found:
                    yield Item(base, how)
            case Item(of=Made(name="builtins.enumerate", call=call), how="iter"), 1:
                yield from self._elements(call, 0)
            case Item(of=Made(name="builtins.zip", call=call), how="iter"), int():
                yield from self._elements(call, how)
            case Item(of=Result(of=Member(of=mapping, name="items")), how="iter"), 1:
                yield from self.item(mapping, "value")
            case Result(
                of=Member(of=Expression(node=nodes.Dict()) as mapping, name="values")
            ), "iter":
                yield from self.item(mapping, "value")
            case Result(of=Code(unit=unit), call=call), "iter":
                for part in self._yielded(unit):
                    yield from self.substituted(part, unit, call)
            case Instance(cls=cls), "iter":
                iterate = next(
                    (c.methods["__iter__"] for c in self.mro(cls) if "__iter__" in c.methods), None
                )
                if (
                    iterate is not None
                    and iterate.is_generator
                    and isinstance(base.call, nodes.Call)
                ):
                    for each in iterate.yields:
                        if each.value is not None:
                            yield from self.of(each.value)
                else:
                    yield Item(base, how)
            case Made(name=name, call=call), int() if name in _APEX_INITIALIZE:
                if how < len(call.args):
                    yield from self.of(call.args[how])
                else:
                    yield Item(base, how)
            case _:
                yield Item(base, how)

    def _layers(self, made: nodes.Call, how: int | str) -> Iterator[Origin]:
        """What stands in a list of layers: each is called by whoever goes through them."""
        for origin in self.of(made.args[0]):
            match origin:
                case Expression(node=nodes.ListComp() | nodes.GeneratorExp() as display):
                    yield from self.of(display.elt)
                case _:
                    yield from self.item(origin, how)

    def _yielded(self, unit: Unit) -> Origins:
        """What a generator hands out, in terms of its own parameters."""
        if id(unit) in self._busy:
            return NOTHING  # it yields from itself
        self._busy.add(id(unit))
        found: set[Origin] = set()
        for node in unit.yields:
            for origin in self.of(node.value):
                if isinstance(node, nodes.YieldFrom):
                    found.update(self.item(origin, "iter"))
                else:
                    found.add(origin)
        self._busy.discard(id(unit))
        return frozenset(found)

    def _elements(self, call: nodes.Call, index: int) -> Iterator[Origin]:
        if index < len(call.args):
            for origin in self.of(call.args[index]):
                yield from self.item(origin, "iter")


def _is_none(node: Node | None) -> bool:
    return isinstance(node, nodes.Const) and node.value is None


def _node_of(origin: Origin) -> Node | None:
    return getattr(origin, "call", None) or getattr(origin, "node", None)


def base_classes(cls: Class) -> list[Node]:
    """The bases of a class as written, ``Dataset`` for ``Dataset[Sample]``."""
    return [b.value if isinstance(b, nodes.Subscript) else b for b in cls.bases]
