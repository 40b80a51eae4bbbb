"""Subject: checkpoints to resume from, and what of the training's state is not in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from astroid import nodes

from ddp_lint.finding import Edit, Fix, Related
from ddp_lint.model.facts import Facts, Spot
from ddp_lint.model.flow import dominates, reaching
from ddp_lint.model.frames import Frame, origins_in, resolve
from ddp_lint.model.gradients import Training
from ddp_lint.model.modules import Binding, Unit
from ddp_lint.model.origins import Instance, Made, Origins
from ddp_lint.model.scaling import is_off
from ddp_lint.model.torch_api import SAME_OBJECT
from ddp_lint.model.tree import Node, dotted, entries, precedes, source
from ddp_lint.model.ways import Event

_MODULES = frozenset({"module", "ddp", "fsdp", "dp", "prepared module", "ema"})
_OPTIMIZERS = frozenset({"optimizer", "prepared optimizer"})
_DEEPEST = 6


@dataclass
class Contents:
    """The values that a saved object holds; ``complete`` where nothing else can be in it."""

    values: list[Node] = field(default_factory=list)
    displays: list[nodes.Dict] = field(default_factory=list)
    complete: bool = True


@dataclass(frozen=True)
class ScalerLost(Spot):
    """A ``torch.save`` of model and optimizer without the scaler that steps the optimizer."""

    step: Event
    scaler: nodes.Call
    display: nodes.Dict | None
    optimizers: Origins

    @property
    def scaler_text(self) -> str:
        return _name_of(self.facts, self.scaler, self.node) or source(
            self.step.move.by or self.scaler
        )

    @property
    def chain(self) -> tuple[Related, ...]:
        return (
            self.facts.related(self.scaler, "the scaler whose state is lost"),
            self.facts.related(self.step.node, "steps the optimizer that is saved"),
        )

    @property
    def fix(self) -> Fix | None:
        """Add the state to the dictionary that is saved, where the scaler has a name there, and
        load it where the optimizer's is loaded: a state that nothing loads mends nothing."""
        if self.display is None or not self.display.items:
            return None
        keys = [key for key, _ in entries(self.display)]
        if any(getattr(key, "value", None) == "scaler" for key in keys):
            return None  # another thing of that name
        name = _name_of(self.facts, self.scaler, self.display)
        if name is None:
            return None
        key = _quoted_as(self.facts, keys[-1])
        edits = [_appended(self.facts, self.display, f"{key}: {name}.state_dict()")]
        loads = self._loads
        if loads:
            loading = self._loading(loads[0])
            if len(loads) > 1 or loading is None:
                return None
            edits.append(loading)
        what = "Save and load" if loads else "Save"
        return Fix(f"{what} `{name}.state_dict()` too", tuple(edits), safe=False)

    @property
    def _loads(self) -> list[nodes.Call]:
        """What loads the optimizer's state, for certain or by its name."""
        found = []
        for call, _ in self.facts.calls:
            func = call.func
            if isinstance(func, nodes.Attribute) and func.attrname == "load_state_dict":
                origins = self.facts.origins(func.expr)
                unseen = not origins and "optim" in dotted(func.expr)
                if unseen or origins & self.optimizers:
                    found.append(call)
        return found

    def _loading(self, load: nodes.Call) -> Edit | None:
        """What loads the state after the optimizer's, where that is one statement; older files
        do not have it."""
        if not isinstance(load.parent, nodes.Expr) or not load.args:
            return None
        state = load.args[0]
        name = _name_of(self.facts, self.scaler, load)
        if name is None or not isinstance(state, nodes.Subscript):
            return None
        file, key = source(state.value), _quoted_as(self.facts, state.slice)
        text = f"if {key} in {file}:\n    {name}.load_state_dict({file}[{key}])"
        return self.facts.insert_after(load, text)


def lost_scalers(training: Training) -> Iterator[ScalerLost]:
    """Checkpoints with a model and an optimizer, without the scaler of that optimizer."""
    facts = training.facts
    saves = list(facts.calls_to({"torch.save"}))
    if not saves:
        return
    pairs = list(_pairs(training))
    if not pairs:
        return
    kept = _scalers_kept(facts)
    seen: set[Node] = set()
    for call, unit in saves:
        if not call.args or _is_final(facts, call, unit):
            continue
        found = Contents()
        _collect(facts, call.args[0], unit, found, set(), 0)
        optimizers = _optimizers_in(facts, found)
        if not optimizers or not found.complete:
            continue
        if seen.intersection(found.displays):
            continue  # the same once more, as the best one
        for step, stepped, scalers in pairs:
            made = [o.call for o in scalers if isinstance(o, Made)]
            if stepped & optimizers and made and not scalers & kept:
                seen.update(found.displays)
                yield ScalerLost(
                    facts,
                    call,
                    step,
                    made[0],
                    found.displays[0] if found.displays else None,
                    stepped & optimizers,
                )
                break


def _is_final(facts: Facts, save: nodes.Call, unit: Unit) -> bool:
    """Whether it is written once, behind all loops, and nothing goes on from such a file."""
    return not facts.steps.loops_outside(save, unit) and not any(
        getattr(call.func, "attrname", "") == "load_state_dict"
        and facts.roles_of(getattr(call.func, "expr", None)) & _OPTIMIZERS
        for call, _ in facts.calls
    )


# -- which scaler steps which optimizer -------------------------------------------------------


def _pairs(training: Training) -> Iterator[tuple[Event, Origins, Origins]]:
    for update in training.updates:
        for step in update.steps:
            by, target = step.move.by, step.move.target
            if step.move.how != "scaler" or by is None or target is None:
                continue
            if is_off(training.facts, by):
                continue
            for frames in _callers(training.facts, step.frame, update.unit, 0):
                stepped = _in_frames(training.facts, target, step.frame, frames)
                scalers = _in_frames(training.facts, by, step.frame, frames)
                if scalers and all(training.facts.roles.role(o) == "scaler" for o in scalers):
                    yield step, stepped, scalers


def _callers(facts: Facts, frame: Frame, unit: Unit, depth: int) -> Iterator[Frame]:
    """The frame of the loop's own unit, once for each place that calls it."""
    sites = [s for s in facts.graph.sites_of(unit) if not s.handed]
    if not sites or depth > 2:
        yield Frame(unit)
        return
    for site in sites:
        for outer in _callers(facts, frame, site.caller, depth + 1):
            yield Frame(unit, "", site.call, outer)


def _in_frames(facts: Facts, node: Node, inner: Frame, outer: Frame) -> Origins:
    """The origins of an expression of the loop, seen from one of its callers."""
    written = resolve(node, inner)
    if written.frame.caller is None:
        return origins_in(facts.graph, written.node, outer)
    return origins_in(facts.graph, written.node, written.frame)


def _scalers_kept(facts: Facts) -> Origins:
    """Scalers whose state is asked for anywhere: saved in a file of their own, perhaps."""
    found: set[object] = set()
    for call, _ in facts.calls:
        if isinstance(call.func, nodes.Attribute) and call.func.attrname == "state_dict":
            found.update(
                o for o in facts.origins(call.func.expr) if facts.roles.role(o) == "scaler"
            )
    return frozenset(found)  # type: ignore[arg-type]


# -- what is in a checkpoint ------------------------------------------------------------------


def _optimizers_in(facts: Facts, found: Contents) -> Origins:
    """The optimizers whose state is saved beside a model's; nothing where a scaler's is, too,
    or where it is not known what else there is."""
    optimizers: set[object] = set()
    model = False
    for value in found.values:
        receiver = _state_of(value)
        if receiver is None:
            continue
        roles = facts.roles_of(receiver)
        origins = facts.origins(receiver)
        if roles & _OPTIMIZERS:
            optimizers.update(origins)
        elif roles & _MODULES:
            model = True
        elif (
            "scaler" in roles
            or any(isinstance(o, Instance) for o in origins)
            or "scaler" in dotted(receiver)
            or "amp" in dotted(receiver)
        ):
            return frozenset()
    return frozenset(optimizers) if model else frozenset()  # type: ignore[arg-type]


def _state_of(value: Node) -> Node | None:
    """``x`` of ``x.state_dict()``, or what is pickled whole, also as a copy."""
    if not isinstance(value, nodes.Call):
        return value if isinstance(value, nodes.Name | nodes.Attribute) else None
    func, copied = value.func, False
    if isinstance(func, nodes.Attribute) and func.attrname == "state_dict":
        return func.expr
    while isinstance(value, nodes.Call):
        func = value.func
        if isinstance(func, nodes.Attribute) and func.attrname in SAME_OBJECT:
            value = func.expr
        elif dotted(func).rpartition(".")[2] == "deepcopy" and value.args:
            value, copied = value.args[0], True
        else:
            break
    return value if copied else None


def _collect(
    facts: Facts, node: Node, unit: Unit, found: Contents, seen: set[int], depth: int
) -> None:
    if id(node) in seen:
        return
    seen.add(id(node))
    if depth > _DEEPEST:
        found.complete = False
        return
    match node:
        case nodes.Dict():
            found.displays.append(node)
            for name, value in entries(node):
                if isinstance(name, nodes.DictUnpack):
                    _collect(facts, value, unit, found, seen, depth + 1)
                else:
                    found.values.append(value)
        case nodes.Call(func=nodes.Name(name="dict")):
            found.values.extend(k.value for k in node.keywords if k.arg is not None)
            for inner in [*node.args, *(k.value for k in node.keywords if k.arg is None)]:
                _collect(facts, inner, unit, found, seen, depth + 1)
        case nodes.Call():
            entered = facts.graph.targets_of(node)
            if not entered:
                found.complete = False
            for target in entered:
                for given in target.returned:
                    _collect(facts, given, target, found, seen, depth + 1)
        case nodes.Name():
            _collect_name(facts, node, unit, found, seen, depth)
        case _:
            found.complete = False


def _collect_name(
    facts: Facts, node: nodes.Name, unit: Unit, found: Contents, seen: set[int], depth: int
) -> None:
    bindings = reaching(unit, node.name, node) if node.name in unit.bindings else []
    if not bindings:
        found.complete = False
    for binding in bindings:
        if id(binding) in seen:
            continue
        seen.add(id(binding))
        if binding.path == ("param",):
            _collect_passed(facts, binding, unit, found, seen, depth)
        elif binding.path == () and binding.value is not None:
            _collect(facts, binding.value, unit, found, seen, depth + 1)
        else:
            found.complete = False
    for store in unit.subscript_stores:
        if dotted(store.value) == node.name:
            if isinstance(store.parent, nodes.Assign):
                found.values.append(store.parent.value)
            else:
                found.complete = False
    for call in unit.calls:
        if isinstance(call.func, nodes.Attribute) and dotted(call.func.expr) == node.name:
            if call.func.attrname == "update":
                found.values.extend(k.value for k in call.keywords if k.arg is not None)
                for inner in [*call.args, *(k.value for k in call.keywords if k.arg is None)]:
                    _collect(facts, inner, unit, found, seen, depth + 1)
            elif call.func.attrname == "setdefault":
                found.complete = False


def _collect_passed(
    facts: Facts, binding: Binding, unit: Unit, found: Contents, seen: set[int], depth: int
) -> None:
    sites = facts.graph.sites_of(unit)
    if not sites:
        found.complete = False
    for site in sites:
        given = facts.graph.given(site, unit, binding.name)
        if given is None:
            found.complete = False
        else:
            _collect(facts, given, site.caller, found, seen, depth + 1)


# -- mending ----------------------------------------------------------------------------------


def _name_of(facts: Facts, scaler: nodes.Call, place: Node) -> str | None:
    """What the scaler is called at a place: a name there or in a function around it, or an
    attribute of the same object."""
    unit = facts.values.unit_of(place)
    hidden: set[str] = set()
    around: Unit | None = unit
    while around is not None:
        for name, bindings in around.bindings.items():
            if name not in hidden and any(b.value is scaler and b.path == () for b in bindings):
                return name if _is_made_before(facts, scaler, place, 0) else None
        hidden.update(around.bindings)
        around = around.outer
    method: Unit | None = unit
    while method is not None and method.owner is None:
        method = method.outer
    if method is not None and method.owner is not None and method.self_name:
        for name, stores in method.owner.attributes.items():
            for at, binding in stores:
                if binding.value is scaler and binding.path == ():
                    late = at is unit and not precedes(scaler, place)
                    return None if late else f"{method.self_name}.{name}"
    return None


def _is_made_before(facts: Facts, scaler: nodes.Call, place: Node, depth: int) -> bool:
    """Whether a place comes after the scaler: in one function as written, in a function inside
    of it wherever that is called."""
    unit = facts.values.unit_of(place)
    if unit is facts.values.unit_of(scaler):
        return precedes(scaler, place) and dominates(scaler, place)
    sites = facts.graph.sites_of(unit)
    return (
        depth < _DEEPEST
        and bool(sites)
        and all(
            not site.spawned
            and not site.handed
            and _is_made_before(facts, scaler, site.call, depth + 1)
            for site in sites
        )
    )


def _quoted_as(facts: Facts, key: Node) -> str:
    """The key of the scaler's state, in quotes as those of another key."""
    place = facts.exact(key)
    line = facts.values.module_of(key).source.source_line(place)
    quote = "'" if line[place.column : place.column + 1] == "'" else '"'
    return f"{quote}scaler{quote}"


def _appended(facts: Facts, display: nodes.Dict, entry: str) -> Edit:
    """A new last entry, on a line of its own where the others have theirs."""
    file = facts.values.module_of(display).source
    last_key, last = display.items[-1]
    line, column = last.end_lineno or 0, last.end_col_offset or 0
    place = file.place(line, column, line, column)
    if (last_key.lineno or 0) == (display.lineno or 0):
        return Edit(place, f", {entry}")
    text = file.lines[(last_key.lineno or 1) - 1]
    indent = text[: len(text) - len(text.lstrip())]
    newline = "\r\n" if "\r\n" in file.text else "\n"
    return Edit(place, f",{newline}{indent}{entry}")
