"""Layer 1, modules: what one file defines, binds, calls and imports, in one pass over its tree.

A ``Unit`` is a stretch of code that runs as one: a module's body, a function, a lambda.  A
class is no unit: its body runs with the unit around it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from astroid import nodes

from ddp_lint.model.tree import Loop, Node, elements, position
from ddp_lint.sources import SourceFile

#: What a unit is the code of.
Code: TypeAlias = nodes.Module | nodes.FunctionDef | nodes.Lambda
FUNCTIONS = (nodes.FunctionDef, nodes.Lambda)
_CACHING = frozenset({"lru_cache", "cache", "cached_property", "memoize", "cached"})


@dataclass(eq=False, repr=False)
class Binding:
    """One place that gives a name a value.

    ``value`` is the expression it comes from and ``path`` the way from there: an index for
    each level of unpacking, "iter" for an element of an iterable, "enter" for what a context
    manager gives, "aug" for an augmented assignment.  ``value`` is None where nothing is known
    (an except clause, a match pattern, ``del``).
    """

    name: str
    node: Node
    value: Node | None
    path: tuple[int | str, ...] = ()

    @property
    def at(self) -> tuple[int, int]:
        return position(self.node)


@dataclass(eq=False, repr=False)
class Unit:
    """A module's body, a function or a lambda, and what happens directly in it.

    ``returns`` are ``return`` statements; of a lambda, the expression that it gives.
    """

    node: Code
    module: Module
    owner: Class | None
    outer: Unit | None
    name: str
    bindings: dict[str, list[Binding]] = field(default_factory=lambda: defaultdict(list))
    calls: list[nodes.Call] = field(default_factory=list)
    loops: list[Loop] = field(default_factory=list)
    returns: list[Node] = field(default_factory=list)
    yields: list[nodes.Yield | nodes.YieldFrom] = field(default_factory=list)
    subscript_stores: list[nodes.Subscript] = field(default_factory=list)
    globals: set[str] = field(default_factory=set)
    units: dict[str, Unit] = field(default_factory=dict)
    classes: dict[str, Class] = field(default_factory=dict)
    inside: list[Unit] = field(default_factory=list)

    @property
    def is_function(self) -> bool:
        return isinstance(self.node, FUNCTIONS)

    @property
    def is_method(self) -> bool:
        return self.owner is not None and "staticmethod" not in self.decorator_names

    @property
    def statements(self) -> list[Node]:
        """What runs when the unit runs; of a lambda that is one expression."""
        return [self.node.body] if isinstance(self.node, nodes.Lambda) else self.node.body

    @property
    def returned(self) -> list[Node]:
        """The values that it gives back; a bare ``return`` gives none."""
        values = [at.value if isinstance(at, nodes.Return) else at for at in self.returns]
        return [value for value in values if value is not None]

    @property
    def arguments(self) -> nodes.Arguments:
        """The parameters as they are written; a module has none."""
        assert not isinstance(self.node, nodes.Module)
        return self.node.args

    @property
    def parameters(self) -> list[str]:
        """Positional parameters in order, then keyword-only ones."""
        if not self.is_function:
            return []
        given = self.arguments
        return [a.name for a in [*given.posonlyargs, *(given.args or []), *given.kwonlyargs]]

    @property
    def positional_parameters(self) -> list[str]:
        given = self.arguments
        return [a.name for a in [*given.posonlyargs, *(given.args or [])]]

    def default_of(self, parameter: str) -> Node | None:
        given = self.arguments
        positional = [*given.posonlyargs, *(given.args or [])]
        # Defaults belong to the last positional parameters.
        last_first = zip(reversed(positional), reversed(given.defaults or []), strict=False)
        keyword_only = zip(given.kwonlyargs, given.kw_defaults or [], strict=False)
        for argument, default in [*last_first, *keyword_only]:
            if argument.name == parameter:
                return default
        return None

    @property
    def decorators(self) -> list[Node]:
        found = getattr(self.node, "decorators", None)
        return list(found.nodes) if found else []

    @property
    def decorator_names(self) -> list[str]:
        """The last part of each decorator's name."""
        names = []
        for decorator in self.decorators:
            func = decorator.func if isinstance(decorator, nodes.Call) else decorator
            names.append(getattr(func, "attrname", getattr(func, "name", "")))
        return names

    @property
    def is_cached(self) -> bool:
        """Whether a decorator keeps what it gave: a call need not run it."""
        return not _CACHING.isdisjoint(self.decorator_names)

    @property
    def self_name(self) -> str | None:
        """What this method calls its own object, also in functions nested in a method."""
        if self.is_method and self.is_function:
            names = self.positional_parameters
            return names[0] if names else None
        return None

    @property
    def is_generator(self) -> bool:
        return bool(self.yields)


@dataclass(eq=False, repr=False)
class Class:
    """A class: its methods, and every value that its code gives to an attribute of ``self``."""

    node: nodes.ClassDef
    module: Module
    scope: Unit
    methods: dict[str, Unit] = field(default_factory=dict)
    attributes: dict[str, list[tuple[Unit, Binding]]] = field(
        default_factory=lambda: defaultdict(list)
    )

    @property
    def name(self) -> str:
        return str(self.node.name)

    @property
    def bases(self) -> list[Node]:
        """The classes above it, as they are written."""
        return cast(list[Node], self.node.bases)


@dataclass(eq=False, repr=False)
class Import:
    """A name bound by an import: of ``module``, or of ``member`` of it ("*": all of them)."""

    module: str
    member: str | None
    node: Node
    level: int = 0


@dataclass(eq=False, repr=False)
class Module:
    """One parsed file."""

    key: str
    source: SourceFile
    tree: nodes.Module
    body: Unit = field(init=False)
    units: list[Unit] = field(default_factory=list)
    classes: list[Class] = field(default_factory=list)
    stars: list[Import] = field(default_factory=list)
    imports: dict[int, Import] = field(default_factory=dict)
    attribute_stores: dict[str, list[tuple[Unit, Node, Binding]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    #: Those of them that are made through a variable, ``worker.chief = rank == 0``.
    outside_stores: dict[str, list[tuple[Unit, nodes.Name, Binding]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    unit_of_node: dict[int, Unit] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.body = Unit(self.tree, self, None, None, self.key)
        self.units.append(self.body)
        self.unit_of_node[id(self.tree)] = self.body
        _Indexer(self).run()

    def unit_of(self, node: Node) -> Unit:
        """The unit in which ``node`` runs."""
        at: Node | None = node
        below: Node | None = None
        while at is not None:
            unit = self.unit_of_node.get(id(at))
            # Decorators and defaults of a function run where the function is defined.
            if unit is not None and (below is None or _runs_inside(unit.node, below)):
                return unit
            below, at = at, at.parent
        return self.body

    @property
    def is_script(self) -> bool:
        """Whether the file runs something when started: a main guard, or plain calls."""
        return any(_is_main_guard(child) for child in self.tree.body)


def _runs_inside(function: Code, child: Node) -> bool:
    if isinstance(function, nodes.Module):
        return True
    if isinstance(function, nodes.Lambda):
        return child is function.body
    return any(child is stmt for stmt in function.body) or child is function.args


def _is_main_guard(node: Node) -> bool:
    return (
        isinstance(node, nodes.If)
        and isinstance(node.test, nodes.Compare)
        and isinstance(node.test.left, nodes.Name)
        and node.test.left.name == "__name__"
    )


class _Indexer:
    """Fills a module's index; an explicit stack, since linted code may be nested deeply."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.todo: list[tuple[Node, Unit, Class | None]] = []

    def run(self) -> None:
        self.push(self.module.tree.body, self.module.body, None)
        todo = self.todo
        while todo:
            node, unit, owner = todo.pop()
            kind = type(node)
            if kind in _LEAVES:
                continue
            scope = _SCOPES.get(kind)
            if scope is not None:
                scope(self, node, unit, owner)
                continue
            handler = _HANDLERS.get(kind)
            if handler is not None:
                handler(self, node, unit, owner)
            children = [(child, unit, owner) for child in node.get_children()]
            children.reverse()
            todo.extend(children)

    def push(self, children: list[Node], unit: Unit, owner: Class | None) -> None:
        self.todo.extend((child, unit, owner) for child in reversed(children))

    # -- scopes ---------------------------------------------------------------------------

    def function(
        self, node: nodes.FunctionDef | nodes.Lambda, unit: Unit, owner: Class | None
    ) -> None:
        if isinstance(node, nodes.FunctionDef):
            inner = Unit(node, self.module, owner, unit, node.name)
        else:
            inner = Unit(node, self.module, None, unit, "")
        self.module.units.append(inner)
        if unit.is_function:
            unit.inside.append(inner)
        self.module.unit_of_node[id(node)] = inner
        if isinstance(node, nodes.FunctionDef):
            if owner is not None:
                owner.methods[node.name] = inner
            else:
                unit.units[node.name] = inner
                self.bind(unit, node.name, node, node)
            if node.decorators:
                self.push(list(node.decorators.nodes), unit, owner)
        given = node.args
        defaults = [d for d in [*(given.defaults or []), *(given.kw_defaults or [])] if d]
        self.push(defaults, unit, owner)
        for argument in [*given.posonlyargs, *(given.args or []), *given.kwonlyargs]:
            self.bind(inner, argument.name, argument, argument, ("param",))
        for name in (given.vararg, given.kwarg):
            if name:
                self.bind(inner, name, given, given, ("param",))
        if isinstance(node, nodes.Lambda):
            inner.returns.append(node.body)
        self.push(inner.statements, inner, None)

    def class_(self, node: nodes.ClassDef, unit: Unit, owner: Class | None) -> None:
        found = Class(node, self.module, unit)
        self.module.classes.append(found)
        if owner is None:
            unit.classes[node.name] = found
            self.bind(unit, node.name, node, node)
        if node.decorators:
            self.push(list(node.decorators.nodes), unit, owner)
        self.push([*found.bases, *node.body], unit, found)

    # -- bindings -------------------------------------------------------------------------

    def bind(
        self,
        unit: Unit,
        name: str,
        node: Node,
        value: Node | None,
        path: tuple[int | str, ...] = (),
    ) -> None:
        unit.bindings[name].append(Binding(name, node, value, path))

    def target(
        self,
        target: Node,
        value: Node | None,
        path: tuple[int | str, ...],
        unit: Unit,
        owner: Class | None,
    ) -> None:
        if isinstance(target, nodes.AssignName):
            if owner is not None:
                binding = Binding(target.name, target, value, path)
                owner.attributes[target.name].append((unit, binding))
            else:
                self.bind(unit, target.name, target, value, path)
        elif isinstance(target, nodes.AssignAttr):
            binding = Binding(target.attrname, target, value, path)
            self.module.attribute_stores[target.attrname].append((unit, target.expr, binding))
            method = _method_around(unit)
            if (
                method is not None
                and method.owner is not None
                and isinstance(target.expr, nodes.Name)
                and target.expr.name == method.self_name
            ):
                method.owner.attributes[target.attrname].append((unit, binding))
            elif isinstance(target.expr, nodes.Name):
                stores = self.module.outside_stores[target.attrname]
                stores.append((unit, target.expr, binding))
        elif isinstance(target, nodes.Tuple | nodes.List):
            values = elements(value) if isinstance(value, nodes.Tuple | nodes.List) else None
            for index, element in enumerate(elements(target)):
                if values is not None and len(values) == len(target.elts) and not path:
                    self.target(element, values[index], (), unit, owner)
                else:
                    self.target(element, value, (*path, index), unit, owner)
        elif isinstance(target, nodes.Starred):
            self.target(target.value, None, (), unit, owner)
        elif isinstance(target, nodes.Subscript):
            unit.subscript_stores.append(target)

    def assign(self, node: nodes.Assign, unit: Unit, owner: Class | None) -> None:
        for target in node.targets:
            self.target(target, node.value, (), unit, owner)

    def annotated(self, node: nodes.AnnAssign, unit: Unit, owner: Class | None) -> None:
        if node.value is not None:
            self.target(node.target, node.value, (), unit, owner)

    def augmented(self, node: nodes.AugAssign, unit: Unit, owner: Class | None) -> None:
        self.target(node.target, node, ("aug",), unit, owner)

    def named(self, node: nodes.NamedExpr, unit: Unit, owner: Class | None) -> None:
        self.target(node.target, node.value, (), unit, None)

    def loop(self, node: nodes.For | nodes.While, unit: Unit, owner: Class | None) -> None:
        unit.loops.append(node)
        if isinstance(node, nodes.For):
            self.target(node.target, node.iter, ("iter",), unit, owner)

    def comprehension(self, node: nodes.Comprehension, unit: Unit, owner: Class | None) -> None:
        self.target(node.target, node.iter, ("iter",), unit, None)

    def with_(self, node: nodes.With, unit: Unit, owner: Class | None) -> None:
        for expression, target in node.items:
            if target is not None:
                self.target(target, expression, ("enter",), unit, owner)

    def handler(self, node: nodes.ExceptHandler, unit: Unit, owner: Class | None) -> None:
        if node.name is not None:
            self.target(node.name, None, (), unit, owner)

    def import_(self, node: nodes.Import, unit: Unit, owner: Class | None) -> None:
        for name, alias in node.names:
            bound = alias or name.partition(".")[0]
            binding = Binding(bound, node, None, ("import",))
            self.module.imports[id(binding)] = Import(name if alias else bound, None, node)
            if not alias and "." in name:
                # ``import a.b`` binds ``a`` and loads ``a.b``; the name leads from ``a`` on.
                self.module.imports[id(binding)] = Import(bound, None, node)
            unit.bindings[bound].append(binding)

    def import_from(self, node: nodes.ImportFrom, unit: Unit, owner: Class | None) -> None:
        for name, alias in node.names:
            found = Import(node.modname or "", name, node, node.level or 0)
            if name == "*":
                self.module.stars.append(found)
                continue
            binding = Binding(alias or name, node, None, ("import",))
            self.module.imports[id(binding)] = found
            unit.bindings[alias or name].append(binding)

    # -- the rest -------------------------------------------------------------------------

    def call(self, node: nodes.Call, unit: Unit, owner: Class | None) -> None:
        unit.calls.append(node)

    def return_(self, node: nodes.Return, unit: Unit, owner: Class | None) -> None:
        unit.returns.append(node)

    def yield_(self, node: nodes.Yield | nodes.YieldFrom, unit: Unit, owner: Class | None) -> None:
        unit.yields.append(node)

    def global_(self, node: nodes.Global, unit: Unit, owner: Class | None) -> None:
        unit.globals.update(node.names)


#: Notes what one kind of node says.
_Note: TypeAlias = Callable[[_Indexer, Any, Unit, Class | None], None]
#: Nodes with nothing below and nothing to note: they are most of a tree.
_LEAVES = frozenset(
    {nodes.Name, nodes.Const, nodes.AssignName, nodes.DelName, nodes.Pass, nodes.Break,
     nodes.Continue, nodes.EmptyNode}
)  # fmt: skip
_SCOPES: dict[type[Node], _Note] = {
    nodes.FunctionDef: _Indexer.function,
    nodes.AsyncFunctionDef: _Indexer.function,
    nodes.Lambda: _Indexer.function,
    nodes.ClassDef: _Indexer.class_,
}
_HANDLERS: dict[type[Node], _Note] = {
    nodes.Assign: _Indexer.assign,
    nodes.AnnAssign: _Indexer.annotated,
    nodes.AugAssign: _Indexer.augmented,
    nodes.NamedExpr: _Indexer.named,
    nodes.For: _Indexer.loop,
    nodes.AsyncFor: _Indexer.loop,
    nodes.While: _Indexer.loop,
    nodes.Comprehension: _Indexer.comprehension,
    nodes.With: _Indexer.with_,
    nodes.AsyncWith: _Indexer.with_,
    nodes.ExceptHandler: _Indexer.handler,
    nodes.Import: _Indexer.import_,
    nodes.ImportFrom: _Indexer.import_from,
    nodes.Call: _Indexer.call,
    nodes.Return: _Indexer.return_,
    nodes.Yield: _Indexer.yield_,
    nodes.YieldFrom: _Indexer.yield_,
    nodes.Global: _Indexer.global_,
}


def _method_around(unit: Unit) -> Unit | None:
    at: Unit | None = unit
    while at is not None:
        if at.owner is not None:
            return at
        at = at.outer
    return None


def method_around(unit: Unit) -> Unit | None:
    """The method that ``unit`` is, or is nested in."""
    return _method_around(unit)
