"""Subject: names of mixed precision that PyTorch has moved, and how to write them now."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from weakref import WeakKeyDictionary

from astroid import nodes

from ddp_lint.finding import Edit, Fix
from ddp_lint.model.codebase import raw_of
from ddp_lint.model.facts import Facts, Spot
from ddp_lint.model.flow import conditions
from ddp_lint.model.modules import Module
from ddp_lint.model.origins import Api
from ddp_lint.model.requirements import Requirement, Version, torch_required
from ddp_lint.model.tree import Node, ancestors, position, source, walk

_NAMES = frozenset({"autocast", "GradScaler", "custom_fwd", "custom_bwd"})
_PACKAGES = {
    "torch.cuda.amp": "cuda",
    "torch.cuda.amp.autocast_mode": "cuda",
    "torch.cuda.amp.grad_scaler": "cuda",
    "torch.cpu.amp": "cpu",
    "torch.cpu.amp.autocast_mode": "cpu",
    "torch.cpu.amp.grad_scaler": "cpu",
}
#: The first PyTorch that has a name in ``torch.amp``; `torch.autocast` itself is older (1.10), see
#: huggingface/pytorch-image-models#1935.
_SINCE: dict[str, Version] = {
    "autocast": (1, 12), "GradScaler": (2, 3), "custom_fwd": (2, 4), "custom_bwd": (2, 4)
}  # fmt: skip
#: The first PyTorch in which the old names warn.
_WARNING: Version = (2, 4)
#: Words of a test that asks for the version at hand: either arm is right with its own.
_ASKING = ("hasattr", "version", "parse(", "is_torch", "torch_", "TORCH")


#: What a ``try`` catches where a name may be missing.
_MISSING = re.compile(r"ImportError|ModuleNotFoundError|AttributeError|Exception")


@dataclass(frozen=True)
class OldName(Spot):
    """A use or an import of names that have moved out of ``package``."""

    package: str
    names: tuple[str, ...]
    module: Module

    @property
    def device(self) -> str:
        return _PACKAGES[self.package]

    @property
    def old(self) -> str:
        first, *more = self.names
        return " and ".join([f"`{self.package}.{first}`", *(f"`{name}`" for name in more)])

    @property
    def new(self) -> str:
        return " and ".join(f"`{self._renamed(name)}`" for name in self.names)

    def _renamed(self, name: str) -> str:
        new, device = f"torch.amp.{name}", f'"{self.device}"'
        if name.startswith("custom"):
            return f"{new}(device_type={device}, ...)"
        uses = self._uses_of(name)
        if uses and all(map(_is_base, uses)):
            return f"{new}, whose constructor takes {device} first"
        if uses and not any(map(_is_called, uses)):
            return f"functools.partial({new}, {device})"
        return f"{new}({device}, ...)"

    def _uses_of(self, name: str) -> list[Node]:
        if not isinstance(self.node, nodes.ImportFrom):
            return [self.node]
        alias = next(alias or one for one, alias in self.node.names if one == name)
        return [use for use in _uses(self.module, alias) if not _only_names_the_type(use)]

    @property
    def _since(self) -> Version:
        return max(_SINCE[name] for name in self.names)

    @property
    def since(self) -> str:
        """The first PyTorch that has all of the new names."""
        return ".".join(map(str, self._since))

    @cached_property
    def _required(self) -> tuple[Requirement, ...]:
        return torch_required(self.facts.values.codebase.project, self.module)

    @property
    def is_kept(self) -> bool:
        """Whether the project asks for a PyTorch in which nothing warns yet."""
        return any(required.excludes(_WARNING) for required in self._required)

    @property
    def allowing_older(self) -> str | None:
        """What the project says of PyTorch, where that lets in one without the new names."""
        told = (one.text for one in self._required if one.allows_older(self._since))
        return next(told, None)

    @property
    def fix(self) -> Fix | None:
        """Safe with every PyTorch that is in use: others would miss ``torch.amp.GradScaler``."""
        if _is_tried(self.node) or self.allowing_older:
            return None
        if isinstance(self.node, nodes.ImportFrom):
            edits = _renamed_import(self.facts, self.module, self.node, self.device)
        else:
            edits = _renamed_use(self.facts, self.module, self.node, self.names[0], self.device)
        safe = set(self.names) == {"autocast"}
        return Fix(f"Use {self.new}", tuple(edits), safe=safe) if edits else None


_Found = tuple[Node, str, tuple[str, ...]]
#: What was found in a module, for all the programs that it is part of.
_KNOWN: WeakKeyDictionary[Module, tuple[_Found, ...]] = WeakKeyDictionary()


def old_names(facts: Facts) -> Iterator[OldName]:
    """Every use by attribute, and every import of single names once."""
    if facts.once(_needs_old_torch):
        return
    for module in facts.modules:
        if module not in _KNOWN:
            _KNOWN[module] = tuple(_names_in(facts, module))
        for node, package, names in _KNOWN[module]:
            found = OldName(facts, node, package, names, module)
            if not found.is_kept and not _is_unused_import(facts, module, node):
                yield found


def _needs_old_torch(facts: Facts) -> bool:
    """Whether a program imports what is gone since PyTorch 2.0: there is no warning then, and not
    every new name."""
    codebase = facts.values.codebase
    asking = {k for k, f in codebase.project.files.items() if b"torch._six" in raw_of(f)}
    todo = [module.key for module in facts.modules] if asking else []
    seen: set[str] = set()
    while todo:
        key = todo.pop()
        module = None if key in seen else codebase.module(key)
        seen.add(key)
        if module is None:
            continue
        if key in asking and _imports_six(module):
            return True
        for found in [*module.imports.values(), *module.stars]:
            for name in (found.module, f"{found.module}.{found.member}"):
                target = codebase.find(name, key, found.level)
                if target is not None:
                    todo.append(target)
    return False


def _imports_six(module: Module) -> bool:
    return any(
        found.module == "torch._six"
        and not any(isinstance(parent, nodes.Try) for _, parent in ancestors(found.node))
        for found in module.imports.values()
    )


def _names_in(facts: Facts, module: Module) -> Iterator[_Found]:
    if "amp" not in module.source.text:
        return
    for node in walk(module.tree):
        if isinstance(node, nodes.ImportFrom) and node.modname in _PACKAGES:
            named = tuple(name for name, _ in node.names if name in _NAMES)
            if named and not node.level and not _is_way_out(node):
                yield node, node.modname, named
        elif isinstance(node, nodes.Attribute) and node.attrname in _NAMES:
            old = _old_name(facts, node)
            if old and not _is_way_out(node) and not _only_names_the_type(node):
                package, _, name = old.rpartition(".")
                yield node, package, (name,)


def _is_unused_import(facts: Facts, module: Module, node: Node) -> bool:
    """Whether nothing is done with what an import brings: nothing warns then, nor where a name
    is only written in annotations."""
    if not isinstance(node, nodes.ImportFrom):
        return False
    names = {alias or name for name, alias in node.names if name in _NAMES}
    used = any(not _only_names_the_type(use) for name in names for use in _uses(module, name))
    return not used and not _is_offered(module, names) and not _is_taken(facts, module, names)


def _uses(module: Module, name: str) -> list[Node]:
    return [n for n in walk(module.tree) if isinstance(n, nodes.Name) and n.name == name]


def _is_offered(module: Module, names: set[str]) -> bool:
    """Whether ``__all__`` lists one of the names."""
    return any(
        isinstance(part, nodes.Const) and part.value in names
        for binding in module.body.bindings.get("__all__", ())
        if binding.value is not None
        for part in walk(binding.value)
    )


def _is_called(node: Node) -> bool:
    return isinstance(node.parent, nodes.Call) and node.parent.func is node


def _is_base(node: Node) -> bool:
    return isinstance(node.parent, nodes.ClassDef) and node in node.parent.bases


def _old_name(facts: Facts, node: nodes.Attribute) -> str:
    origins = facts.values.of(node)
    names = {o.name for o in origins if isinstance(o, Api)}
    if len(names) != len(origins) or not names:
        return ""
    if all(name.rpartition(".")[0] in _PACKAGES for name in names):
        return min(names)
    return ""


def _is_way_out(node: Node) -> bool:
    """Used only where the new name is missing, or under a test of the version."""
    if any(isinstance(parent, nodes.ExceptHandler) for _, parent in ancestors(node)):
        return True
    return any(word in source(c.test) for c in conditions(node) for word in _ASKING)


def _is_tried(node: Node) -> bool:
    """Whether a PyTorch without the old name is reckoned with: it has not the new one either, and
    what comes then may rest on which of them it has."""
    return any(
        isinstance(parent, nodes.Try)
        and child in parent.body
        and any(
            handler.type is None or _MISSING.search(handler.type.as_string())
            for handler in parent.handlers
        )
        for child, parent in ancestors(node)
    )


def _only_names_the_type(node: Node) -> bool:
    """An annotation, or the class that an ``isinstance`` asks for."""
    for child, parent in ancestors(node):
        if isinstance(parent, nodes.Call) and child in parent.args:
            return getattr(parent.func, "name", "") in ("isinstance", "issubclass")
        if isinstance(parent, nodes.Arguments):
            annotations = [*parent.annotations, *parent.kwonlyargs_annotations,
                           *parent.posonlyargs_annotations]  # fmt: skip
            return any(child is one for one in annotations)
        if isinstance(parent, nodes.AnnAssign):
            return child is parent.annotation
        if isinstance(parent, nodes.FunctionDef):
            return child is parent.returns
        if child.is_statement:
            return False
    return False


# -- mending ----------------------------------------------------------------------------------


def _renamed_use(facts: Facts, module: Module, node: Node, name: str, device: str) -> list[Edit]:
    if "torch" not in module.body.bindings:
        return []
    given = _given_device(facts, node, name, device)
    return [facts.replace(node, f"torch.amp.{name}"), *given] if given else []


def _given_device(facts: Facts, node: Node, name: str, device: str) -> list[Edit]:
    """Edits that pass the device to whatever is done with the name; none where it is handed on."""
    quoted = f'"{device}"'
    call = node.parent
    passed = f"device_type={quoted}" if name.startswith("custom") else quoted
    if isinstance(call, nodes.Call) and call.func is node:
        return _with_argument(facts, call, name, passed)
    if isinstance(call, nodes.Decorators) and name.startswith("custom"):
        return [
            _insert(facts, node, node.end_lineno or 0, node.end_col_offset or 0, f"({passed})")
        ]
    return []


def _with_argument(facts: Facts, call: nodes.Call, name: str, passed: str) -> list[Edit]:
    arguments = sorted([*call.args, *call.keywords], key=position)
    if not arguments:
        line, column = call.end_lineno or 0, (call.end_col_offset or 0) - 1
        return [_insert(facts, call, line, column, passed)]
    if name == "autocast" and call.args:
        if len(call.args) > 1 or isinstance(call.args[0], nodes.Starred):
            return []
        passed = f"{passed}, enabled="
    else:
        line, column = position(arguments[0])
        apart = line > (call.func.end_lineno or line)  # one argument a line
        passed = f"{passed},\n{' ' * column}" if apart else f"{passed}, "
    return [_insert(facts, call, *position(arguments[0]), passed)]


def _insert(facts: Facts, node: Node, line: int, column: int, text: str) -> Edit:
    place = facts.values.module_of(node).source.place(line, column, line, column)
    return Edit(place, text)


def _renamed_import(
    facts: Facts, module: Module, node: nodes.ImportFrom, device: str
) -> list[Edit]:
    """The import, and the device into each call of the names in this file."""
    names = {alias or name: name for name, alias in node.names}
    if not set(names.values()) <= _NAMES or _is_imported_elsewhere(facts, module, set(names)):
        return []
    number, old = node.lineno or 1, node.modname or ""
    line = module.source.lines[number - 1]
    at = line.find(old)
    if at < 0:
        return []
    column = len(line[:at].encode())
    place = module.source.place(number, column, number, column + len(old))
    edits = [Edit(place, "torch.amp")]
    for unit in module.units:
        if any(len(unit.bindings.get(name, ())) > (unit is module.body) for name in names):
            return []
    for use in walk(module.tree):
        if not isinstance(use, nodes.Name) or use.name not in names:
            continue
        if _only_names_the_type(use):
            continue
        given = _given_device(facts, use, names[use.name], device)
        if not given:
            return []
        edits.extend(given)
    return edits


def _is_imported_elsewhere(facts: Facts, module: Module, names: set[str]) -> bool:
    """Whether another file takes the names from this one, and calls them without a device."""
    return "__all__" in module.body.bindings or _is_taken(facts, module, names)


def _is_taken(facts: Facts, module: Module, names: set[str]) -> bool:
    """Whether another file of the project imports one of the names from this one."""
    codebase = facts.values.codebase
    words = [name.encode() for name in names]
    for key, file in codebase.project.files.items():
        if key == module.key or not any(word in raw_of(file) for word in words):
            continue
        other = codebase.module(key)
        if other is not None and any(
            codebase.target(found, key) == module.key
            for found in [
                *(one for one in other.imports.values() if one.member in names),
                *(star for star in other.stars if any(_uses(other, name) for name in names)),
            ]
        ):
            return True
    return False
