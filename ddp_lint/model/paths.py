"""Layer 10, paths: whether the name of a file is the same on all ranks."""

from __future__ import annotations

import re
from collections.abc import Iterator

from astroid import nodes

from ddp_lint.model.facts import Facts
from ddp_lint.model.guards import RANKS
from ddp_lint.model.modules import Unit
from ddp_lint.model.options import options
from ddp_lint.model.origins import Expression, Made
from ddp_lint.model.torch_api import RANK_CALLS, RANK_ENVIRONMENT
from ddp_lint.model.tree import Node, dotted, walk
from ddp_lint.model.wrappers import bindings_of

#: Names and functions that make a path a process's own, or that cannot be told.
_PER_PROCESS = re.compile(
    r"rank|getpid|uuid|hostname|gethostname|tempfile|mkdtemp|mkstemp|NamedTemporary|TMPDIR|HF_HOME"
    r"|node_id|node_name|\bnow\b|strftime|timestamp|\btime\b|run\.dir|token_hex|urandom|worker",
    re.I,
)
_NODE_DISKS = ("/tmp", "/dev/shm", "/scratch/local", "/local")
#: Names of folders that are meant to be one for each node.
_LOCAL = re.compile(r"local_?(out|dir|path|folder|root|ckpt|disk|cache|scratch)|scratch_dir", re.I)
#: What the help of an option says of such a folder.
_LOCAL_DISK = re.compile(r"local (storage|disk|drive|ssd|scratch|folder|dir)", re.I)
#: What gives a path whose last part is that of its last argument.
_PATHS = frozenset({"Path", "PurePath", "PosixPath", "str", "fspath", "abspath", "realpath",
                    "expanduser", "join", "joinpath"})  # fmt: skip
#: What gives a text, whatever of.
_TEXTS = frozenset(
    {"builtins.str",
     *(f"os.path.{name}" for name in ("abspath", "basename", "dirname", "expanduser", "join",
                                      "normpath", "realpath"))}
)  # fmt: skip
_DEEPEST = 8


class Paths:
    """Asks about the paths of one program.

    ``unknown`` says what counts for a parameter that nobody is known to pass.
    """

    def __init__(self, facts: Facts, unknown: bool) -> None:
        self.facts = facts
        self.unknown = unknown
        self._seen: set[int] = set()

    def may_differ(self, node: Node, depth: int = 0) -> bool:
        """Whether the value may be another one on another rank, as far as anything says so."""
        if id(node) in self._seen or depth > _DEEPEST:
            return False
        self._seen.add(id(node))
        match node:
            case nodes.Const():
                return False
            case nodes.Name():
                return self._name(node, depth)
            case nodes.Attribute():
                return self._attribute(node, depth)
            case nodes.Call():
                return self._call(node, depth)
            case nodes.Subscript():
                key = node.slice
                if (
                    isinstance(key, nodes.Const)
                    and isinstance(key.value, str)
                    and (RANK_ENVIRONMENT.get(key.value) or _PER_PROCESS.search(key.value))
                ):
                    return True
                return self.may_differ(node.value, depth + 1)
        return any(self.may_differ(child, depth) for child in node.get_children())

    def _ranks_disagree(self, node: Node) -> bool:
        values = [repr(self.facts.guards.value(node, rank)) for rank in RANKS]
        return len(set(values)) > 1

    def _name(self, node: nodes.Name, depth: int) -> bool:
        if self._ranks_disagree(node) or _PER_PROCESS.search(node.name):
            return True
        for binding, unit in bindings_of(self.facts, node):
            path, value = binding.path, binding.value
            if path == ("param",):
                if binding.name != unit.self_name and self._parameter(unit, binding.name, depth):
                    return True
            elif path == ("iter",) and value is not None and self._is_text(value):
                if self.may_differ(value, depth + 1):
                    return True
            elif path[:1] == ("iter",):
                if value is not None and self._is_of_samples(value, path):
                    return True
            elif isinstance(value, nodes.AugAssign):
                if self.may_differ(value.value, depth + 1):
                    return True
            elif value is not None and path != ("import",) and self.may_differ(value, depth + 1):
                return True
        return False

    def _parameter(self, unit: Unit, name: str, depth: int) -> bool:
        sites = self.facts.graph.sites_of(unit)
        for site in sites:
            given = self.facts.graph.given(site, unit, name)
            if given is not None and self.may_differ(given, depth + 1):
                return True
        return self.unknown and not sites

    def _is_text(self, value: Node) -> bool:
        """Whether a loop goes through the characters of a text."""
        origins = self.facts.origins(value)
        return bool(origins) and all(
            (isinstance(o, Made) and o.name in _TEXTS)
            or (isinstance(o, Expression) and _is_written_text(o.node))
            for o in origins
        )

    def _is_of_samples(self, value: Node, path: tuple[int | str, ...]) -> bool:
        """An element of a loader or of a list of files: each rank has its own."""
        if isinstance(value, nodes.Call):
            name = dotted(value.func).rpartition(".")[2]
            if name in ("range", "trange", "count"):
                return False
            if name == "enumerate" and value.args:
                return path[1:2] != (0,) and self._is_of_samples(value.args[0], path[1:])
            if name in ("items", "keys", "values"):
                return False  # the names in a dictionary are the program's
            if name in ("tqdm", "list", "sorted", "zip"):
                inside = value.args[0] if value.args else getattr(value.func, "expr", value)
                if isinstance(inside, nodes.Call | nodes.Name) and inside is not value:
                    return self._is_of_samples(inside, path)
                return True
        if self.facts.roles_of(value) & {"module", "optimizer"}:
            return False
        literal = (nodes.List, nodes.Tuple, nodes.Dict)
        return not isinstance(value, literal) and not all(
            isinstance(getattr(origin, "node", None), literal)
            for origin in self.facts.origins(value)
        )

    def _attribute(self, node: nodes.Attribute, depth: int) -> bool:
        if _PER_PROCESS.search(node.attrname) or self._ranks_disagree(node):
            return True
        for module in self.facts.modules:
            for _, _, binding in module.attribute_stores.get(node.attrname, ()):
                value = binding.value
                if value is not None and not binding.path and self.may_differ(value, depth + 1):
                    return True
        return not isinstance(node.expr, nodes.Name) and self.may_differ(node.expr, depth + 1)

    def _call(self, node: nodes.Call, depth: int) -> bool:
        if self._ranks_disagree(node) or _PER_PROCESS.search(dotted(node.func)):
            return True
        names = self.facts.names(node)
        if any(RANK_CALLS.get(name) in ("global", "local", "node") for name in names):
            return True
        inside = [*node.args, *(k.value for k in node.keywords)]
        if isinstance(node.func, nodes.Attribute):
            inside.append(node.func.expr)
        if any(self.may_differ(one, depth + 1) for one in inside):
            return True
        for unit in self.facts.graph.targets_of(node):
            if any(self.may_differ(value, depth + 1) for value in unit.returned):
                return True
        return False


def _is_written_text(node: Node) -> bool:
    return isinstance(node, nodes.JoinedStr) or isinstance(getattr(node, "value", None), str)


def is_on_node_disk(facts: Facts, path: Node | None) -> bool:
    """Whether the path names a place that each node has for itself."""
    return any(
        _names_node_disk(facts, node)
        for piece in pieces(facts, path, set(), 0)
        for node in walk(piece)
    )


def _names_node_disk(facts: Facts, node: Node) -> bool:
    match node:
        case nodes.Const(value=str(text)):
            return text.startswith(_NODE_DISKS)
        case nodes.Name(name=name):
            return bool(_LOCAL.search(name))
        case nodes.Attribute(attrname=name):
            option = facts.once(options).get(name)
            told = getattr(option.default, "value", "") if option is not None else ""
            return (
                bool(_LOCAL.search(name))
                or (isinstance(told, str) and told.startswith(_NODE_DISKS))
                or (option is not None and bool(_LOCAL_DISK.search(option.help)))
            )
    return False


def pieces(facts: Facts, node: Node | None, seen: set[int], depth: int) -> Iterator[Node]:
    """The expressions that a value is put together from."""
    if node is None or id(node) in seen or depth > _DEEPEST:
        return
    seen.add(id(node))
    yield node
    for at in walk(node):
        if not isinstance(at, nodes.Name) or _is_callee(at):
            continue
        for binding, unit in bindings_of(facts, at):
            if binding.path == ("param",):
                for site in facts.graph.sites_of(unit):
                    given = facts.graph.given(site, unit, binding.name)
                    yield from pieces(facts, given, seen, depth + 1)
            elif not binding.path:
                yield from pieces(facts, binding.value, seen, depth + 1)


def file_name(facts: Facts, path: Node | None) -> str | None:
    """The last part of a path, where it is written out: of ``Path(folder) / NAME`` the name."""
    for _ in range(_DEEPEST):
        match path:
            case nodes.Const(value=str(text)):
                return text.rpartition("/")[2] or None
            case nodes.BinOp(op="/", right=right):
                path = right
            case nodes.JoinedStr(values=[_, *_, nodes.Const(value=str(text)) as last]) if (
                "/" in text
            ):
                path = last
            case nodes.Call(args=[*_, last]) if dotted(path.func).rpartition(".")[2] in _PATHS:
                path = last
            case nodes.Name():
                path = _only_value(facts, path)
            case _:
                return None
    return None


def _only_value(facts: Facts, name: nodes.Name) -> Node | None:
    """The one expression that a name has its value from, in its file or where it is imported."""
    found = [binding for binding, _ in bindings_of(facts, name)]
    if len(found) == 1 and not found[0].path:
        return found[0].value
    origins = facts.origins(name)
    return next((o.node for o in origins if isinstance(o, Expression) and len(origins) == 1), None)


def _is_callee(node: Node) -> bool:
    return isinstance(node.parent, nodes.Call) and node.parent.func is node
