"""Layer 13, sample_flow: what becomes of a value that the work of one sample has made.

The image that ``Image.open`` gives is followed through names, calls and transforms, also out of
the function that decodes it.  Where other things go along, in a tuple or a dictionary, they
cannot be told from it, and a use says so.
"""

from __future__ import annotations

from dataclasses import dataclass

from astroid import nodes

from ddp_lint.model.datasets import Chain, Datasets, SampleSpot
from ddp_lint.model.modules import Class, Unit
from ddp_lint.model.origins import Instance, Item, Made, Member, Param, Result, Unknown
from ddp_lint.model.passing import argument_for
from ddp_lint.model.tree import Node, dotted, elements, entries, position

_DEEPEST = 6
_MOST = 20_000
#: Functions and methods that tell something about a value and do not hand it on.
_TELLING = frozenset(
    {"len", "isinstance", "hasattr", "print", "int", "float", "str", "bool", "type", "min", "max",
     "sum", "any", "all"}
)  # fmt: skip
_TELLING_METHODS = frozenset(
    {"min", "max", "sum", "mean", "std", "any", "all", "size", "dim", "numel", "getbbox", "verify",
     "close"}
)  # fmt: skip
_GROWING = frozenset({"append", "extend", "insert", "add", "update", "setdefault"})
_SAME = frozenset({"T", "data", "array", "values"})


@dataclass(frozen=True)
class Use:
    """A call, a cut or an operation that the value goes into.

    ``chain`` leads to it, outermost first.  ``is_itself``: nothing else has gone along with the
    value.  ``is_unknown``: a call of something that cannot be followed.
    """

    node: Node
    chain: Chain
    is_itself: bool
    is_unknown: bool = False

    @property
    def ways(self) -> list[Node]:
        return [*(call for call, _ in self.chain), self.node]


@dataclass
class _Run:
    """One run of a unit: the names that hold the value, each with whether they hold it alone."""

    unit: Unit
    chain: Chain
    names: dict[str, bool]
    made: dict[int, bool]
    given_back: bool | None = None


class SampleFlow:
    """The value of ``spot`` on its way; ``uses`` are in the order in which a sample does them.

    ``carriers`` are the expressions, by their ids, that give the value or what was made of it.
    ``is_given_away``: code outside the project gets it, as from the ``loader`` of a dataset.
    """

    def __init__(self, datasets: Datasets, spot: SampleSpot) -> None:
        self.datasets = datasets
        self.facts = datasets.facts
        self.cls: Class | None = next((c for c in datasets.classes if c.name == spot.owner), None)
        self.uses: list[Use] = []
        self.carriers = {id(spot.node)}
        self.is_given_away = False
        self._left = _MOST
        node, unit, chain, alone = spot.node, spot.unit, spot.chain, True
        while True:
            run = _Run(unit, chain, {}, {id(node): alone})
            self._go(run, node)
            if run.given_back is None or not chain:
                self.is_given_away = run.given_back is not None and self.cls is None
                return
            alone = run.given_back
            (node, unit), chain = chain[-1], chain[:-1]
            self.carriers.add(id(node))

    def _go(self, run: _Run, start: Node | None) -> None:
        """Run the unit, from behind ``start`` on where that is given."""
        for at in run.unit.statements:
            for node in self.facts.steps.sequence(at):
                if start is not None:
                    start = None if node is start else start
                    continue
                self._left -= 1
                if self._left < 0:
                    return
                self._visit(node, run)
        if isinstance(run.unit.node, nodes.Lambda):
            run.given_back = self._of(run.unit.node.body, run)

    def _visit(self, node: Node, run: _Run) -> None:
        match node:
            case nodes.Call():
                if not self.datasets.leaves_out(node):
                    self._call(node, run)
            case nodes.Subscript() | nodes.Compare() | nodes.BinOp():
                alone = self._of(node, run)
                if alone is not None and not _is_store(node):
                    self.uses.append(Use(node, run.chain, alone))
            case nodes.Assign(targets=targets, value=value):
                for target in targets:
                    self._bind(target, value, run)
            case nodes.AnnAssign(target=target, value=value) if value is not None:
                self._bind(target, value, run)
            case (
                nodes.AugAssign(target=target, value=value)
                | nodes.NamedExpr(target=target, value=value)
            ):
                self._bind(target, value, run)
            case nodes.AssignName():
                self._bind_of_block(node, run)
            case nodes.Return(value=value) | nodes.Yield(value=value) if value is not None:
                alone = self._of(value, run)
                if alone is not None:
                    run.given_back = alone

    # -- names ------------------------------------------------------------------------------

    def _bind(self, target: Node, value: Node, run: _Run) -> None:
        if isinstance(target, nodes.Tuple | nodes.List):
            inside = elements(target)
            given = elements(value) if isinstance(value, nodes.Tuple | nodes.List) else []
            if len(given) == len(inside):
                for one, its in zip(inside, given, strict=True):
                    self._bind(one, its, run)
            elif self._of(value, run) is not None:
                for one in inside:
                    self._hold(one, False, run)
            return
        alone = self._of(value, run)
        if alone is not None:
            self._hold(target, alone, run)

    def _hold(self, target: Node, alone: bool, run: _Run) -> None:
        match target:
            case nodes.AssignName() | nodes.AssignAttr():
                run.names[dotted(target)] = alone
            case nodes.Subscript():
                run.names.setdefault(dotted(target.value), False)
            case nodes.Starred():
                self._hold(target.value, False, run)
            case nodes.Tuple() | nodes.List():
                for one in elements(target):
                    self._hold(one, False, run)

    def _bind_of_block(self, name: nodes.AssignName, run: _Run) -> None:
        """``for frame in frames``, ``with Image.open(path) as image``."""
        at: Node = name
        while isinstance(at.parent, nodes.Tuple | nodes.List):
            at = at.parent
        match at.parent:
            case (nodes.For() | nodes.Comprehension()) as loop if loop.target is at:
                if self._of(loop.iter, run) is not None:
                    self._hold(at, False, run)
            case nodes.With(items=items):
                for expression, target in items:
                    if target is at:
                        self._bind(at, expression, run)

    def _of(self, node: Node | None, run: _Run) -> bool | None:
        """Whether the value is in ``node`` (None: it is not), and alone there."""
        if node is None:
            return None
        if id(node) in run.made:
            return run.made[id(node)]
        match node:
            case nodes.Name():
                return run.names.get(node.name)
            case nodes.Attribute():
                known = run.names.get(dotted(node))
                return (
                    self._of(node.expr, run) if known is None and node.attrname in _SAME else known
                )
            case nodes.Subscript():
                return self._of(node.value, run)
            case nodes.IfExp():
                return _either(self._of(node.body, run), self._of(node.orelse, run))
            case nodes.Tuple() | nodes.List() | nodes.Set():
                inside = [self._of(one, run) for one in elements(node)]
                return None if all(one is None for one in inside) else False
            case nodes.Dict():
                inside = [self._of(value, run) for _, value in entries(node)]
                return None if all(one is None for one in inside) else False
            case nodes.DictComp():
                return None if self._of(node.value, run) is None else False
            case nodes.ListComp() | nodes.SetComp() | nodes.GeneratorExp():
                return None if self._of(node.elt, run) is None else False
            case (
                nodes.BinOp()
                | nodes.UnaryOp()
                | nodes.BoolOp()
                | nodes.Compare()
                | (nodes.Starred() | nodes.NamedExpr() | nodes.Await())
            ):
                return _either(*(self._of(one, run) for one in node.get_children()))
        return None

    # -- calls ------------------------------------------------------------------------------

    def _call(self, call: nodes.Call, run: _Run) -> None:
        func = call.func
        receiver = func.expr if isinstance(func, nodes.Attribute) else None
        on_it = self._of(receiver, run)
        given = [self._of(a, run) for a in (*call.args, *(k.value for k in call.keywords))]
        handed = _either(*given)
        alone = _either(on_it, handed)
        name = str(getattr(func, "attrname", getattr(func, "name", "")))
        if alone is None or name in (_TELLING if receiver is None else _TELLING_METHODS):
            return
        if receiver is not None and on_it is None and name in _GROWING:
            run.names.setdefault(dotted(receiver), False)
        entered = self._entered(call, run)
        unknown = not entered and on_it is None and self._is_unknown(func)
        self.uses.append(Use(call, run.chain, alone, unknown))
        results = [self._enter(unit, call, run) for unit in entered]
        known = _either(*results)
        if not entered or self._is_container(func):
            known = _either(known, alone)
        if known is not None:
            run.made[id(call)] = known
            self.carriers.add(id(call))

    def _entered(self, call: nodes.Call, run: _Run) -> list[Unit]:
        """What a call enters; of several transforms, which are applied in turn, as written."""
        entered = self.datasets.entered(call, run.unit, self.cls)
        if len(entered) < 2:
            return entered
        made = [o for o in self.facts.origins(call.func) if isinstance(o, Instance) and o.call]

        def written(unit: Unit) -> tuple[int, int]:
            places = [
                position(o.call)
                for o in made
                if o.call is not None and unit.owner in self.facts.values.mro(o.cls)
            ]
            return min(places, default=(0, 0))

        return sorted(entered, key=written)

    def _enter(self, unit: Unit, call: nodes.Call, run: _Run) -> bool | None:
        inside = any(at is unit for _, at in run.chain) or unit is run.unit
        if not unit.is_function or inside or len(run.chain) >= _DEEPEST:
            return None
        names = {}
        for parameter in unit.parameters:
            alone = self._of(argument_for(call, unit, parameter), run)
            if alone is not None:
                names[parameter] = alone
        if not names:
            return None
        entered = _Run(unit, (*run.chain, (call, run.unit)), names, {})
        self._go(entered, None)
        return False if unit.name == "__init__" else entered.given_back

    def _is_unknown(self, func: Node) -> bool:
        return any(
            isinstance(o, Param | Unknown | Member | Result | Item)
            for o in self.facts.origins(func)
        )

    def _is_container(self, func: Node) -> bool:
        """A container of transforms that is not the project's own."""
        return any(isinstance(o, Made) for o in self.facts.origins(func))


def _either(*held: bool | None) -> bool | None:
    known = [one for one in held if one is not None]
    return any(known) if known else None


def _is_store(node: Node) -> bool:
    """``canvas[top:bottom, left:right] = image``."""
    at = node.parent
    return isinstance(at, nodes.Assign) and any(one is node for one in at.targets)
