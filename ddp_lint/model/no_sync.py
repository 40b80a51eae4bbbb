"""Subject: when DDP averages gradients in a window of micro-batches, and when it is told not to.

DDP decides in its forward whether the backward that follows averages, so a ``no_sync()`` has
to be around the forward.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from astroid import nodes

from ddp_lint.finding import Edit, Fix, Related
from ddp_lint.model.accumulation import accelerator_accumulates, in_accumulate
from ddp_lint.model.counters import stores
from ddp_lint.model.facts import Facts, Spot
from ddp_lint.model.flow import reaching, with_items
from ddp_lint.model.frames import Frame, resolve
from ddp_lint.model.gradients import Training, Update, Window
from ddp_lint.model.importing import imported
from ddp_lint.model.modules import Unit
from ddp_lint.model.origins import Api, Folder, Instance, Made, Member, Origin, Result
from ddp_lint.model.tree import Node, block_of, is_within, source, statement, walk
from ddp_lint.model.ways import Event

_DEEPSPEED = re.compile(r"\bdeepspeed_(plugin|config)\b")
_WRAPPED = frozenset({"ddp", "prepared module"})
_OWN_AFFAIR = frozenset({"fsdp", "engine"})
_SWITCHES = frozenset({"no_sync", "no_backward_sync", "require_backward_grad_sync",
                       "set_requires_gradient_sync", "set_is_last_backward",
                       "disable_allreduce", "enable_allreduce"})  # fmt: skip


# -- without no_sync --------------------------------------------------------------------------


@dataclass(frozen=True)
class Unsynchronized(Spot):
    """A loop over micro-batches each of which averages; it stands at the loop."""

    window: Window
    backward: Event
    model: Node

    @property
    def backward_text(self) -> str:
        return source(self.backward.node)

    @property
    def model_text(self) -> str:
        return source(self.model)

    @property
    def has_context(self) -> bool:
        """Whether its wrapper has a context that holds averaging back; that of apex has none."""
        return not any(
            isinstance(origin, Made) and origin.name.startswith("apex.")
            for origin in self.facts.origins(self.model)
        )

    @property
    def accelerator_text(self) -> str | None:
        """The ``Accelerator`` that runs backward, where there is one."""
        by = self.backward.move.by
        is_one = by is not None and "accelerator" in self.facts.roles_of(by)
        return source(by) if by is not None and is_one else None

    @property
    def context_text(self) -> str:
        """The context that holds averaging back, as this program would write it."""
        by, roles = self.backward.move.by, self.facts.roles_of(self.backward.move.by)
        if self.accelerator_text is not None:
            return f"{self.accelerator_text}.accumulate({self.model_text})"
        if by is not None and "fabric" in roles:
            return f"{source(by)}.no_backward_sync({self.model_text})"
        return f"{self.model_text}.no_sync()"

    @property
    def length_text(self) -> str:
        return self.window.length_text

    @property
    def chain(self) -> tuple[Related, ...]:
        found = [self.facts.related(self.backward.node, "averages all gradients over the ranks")]
        found += [
            self.facts.related(step.node, "steps once for each window")
            for step in self.window.steps
        ]
        return tuple(found)

    @property
    def fix(self) -> Fix | None:
        """Wrap forward and backward, where they are one straight stretch of the loop's body.

        With an ``Accelerator`` more has to change: under DeepSpeed its ``backward()`` steps unless
        ``accumulate()`` has told it not to, which ``no_sync()`` does not.
        """
        if self.accelerator_text is not None:
            return None
        gate, loop = self.window.gate, self.window.header
        if gate is None or self.window.loop is not None or self.backward.frame.caller is not None:
            return None
        if not self.has_context:
            return None
        last = statement(self.backward.node)
        if last.parent is not loop or self.backward.node.parent is not last:
            return None
        if not isinstance(self.model, nodes.Name | nodes.Attribute):
            return None
        if self.facts.roles_of(self.model) not in ({"ddp"}, {"prepared module"}):
            return None  # where it is not wrapped it has no ``no_sync``
        body = list(loop.body)  # type: ignore[attr-defined]
        first = next((s for s in body if _calls(s, source(self.model))), None)
        if first is None or body.index(first) > body.index(last):
            return None
        stretch = body[body.index(first) : body.index(last) + 1]
        test = source(gate.test)
        if gate.frame.caller is not None or _binds(stretch, gate.test) or test.endswith("..."):
            return None
        imported = self._null_context()
        if imported is None:
            return None
        name, edits = imported
        head = f"with {name}() if {test} else {self.context_text}:"
        edits = [*edits, *_entered(self.facts, stretch, head)]
        return Fix(f"Wrap them in `{head}`", tuple(edits), safe=False)

    def _null_context(self) -> tuple[str, list[Edit]] | None:
        """What ``nullcontext`` is called in the file, with an import where it is not."""
        module = self.facts.values.module_of(self.node)
        if "nullcontext" in module.body.bindings:
            return "nullcontext", []
        if "contextlib" in module.body.bindings:
            return "contextlib.nullcontext", []
        edit = imported(self.facts, module, "contextlib", "nullcontext")
        return ("nullcontext", [edit]) if edit is not None else None


def _entered(
    facts: Facts, stretch: list[Node], head: str, unit: str = "", end: int = 0
) -> Iterator[Edit]:
    """``head`` above a stretch of statements, and its lines, or those before ``end``, one ``unit``
    further in."""
    file = facts.values.module_of(stretch[0]).source
    start = stretch[0].fromlineno or 1
    end = end or (stretch[-1].end_lineno or start) + 1
    indent = file.lines[start - 1][
        : len(file.lines[start - 1]) - len(file.lines[start - 1].lstrip())
    ]
    unit = unit or ("\t" if indent.endswith("\t") else "    ")
    within = _lines_within_texts(stretch)
    for line in range(start, end):
        text = file.lines[line - 1]
        if not text.strip() or line in within:
            continue
        column = len(text) - len(text.lstrip())
        begin = f"{head}\n{indent}" if line == start else ""
        yield Edit(file.place(line, column, line, column), f"{begin}{unit}")


def _lines_within_texts(stretch: list[Node]) -> set[int]:
    """Lines that begin inside of a string, which must stay as they are."""
    found: set[int] = set()
    for stmt in stretch:
        for part in walk(stmt):
            if isinstance(part, nodes.Const | nodes.JoinedStr):
                found.update(range((part.lineno or 0) + 1, (part.end_lineno or 0) + 1))
    return found


def _calls(stmt: Node, model: str) -> bool:
    return any(isinstance(p, nodes.Call) and source(p.func) == model for p in walk(stmt))


def _binds(stretch: list[Node], test: Node) -> bool:
    """Whether a name of the test gets its value only within the stretch."""
    names = {p.name for p in walk(test) if isinstance(p, nodes.Name)}
    return any(
        isinstance(p, nodes.AssignName) and p.name in names for s in stretch for p in walk(s)
    )


def unsynchronized(training: Training) -> Iterator[Unsynchronized]:
    """Loops over micro-batches under DDP in which every backward averages."""
    facts = training.facts
    seen: set[Node] = set()
    for update in training.updates:
        for window in update.windows:
            if window.header in seen or window.certainty != "certain":
                continue
            if _is_of_deepspeed(facts, window.length):
                continue
            backwards = [b for b in window.within("backward") if _is_plain(training, b)]
            if not backwards:
                continue
            model = _Iteration(training, update).averaging_model()
            if model is not None:
                seen.add(window.header)
                yield Unsynchronized(facts, window.header, window, backwards[0], model)


def _is_of_deepspeed(facts: Facts, length: Node | None) -> bool:
    """Whether how many there are is said by the DeepSpeed plugin, and it is 1 without: DeepSpeed
    averages when it is time."""
    if length is None:
        return False
    values = [binding.value for binding, _ in stores(facts, length) if not binding.path] if (
        isinstance(length, nodes.Name | nodes.Attribute)) else [length]  # fmt: skip
    arms = [
        arm
        for value in values
        for arm in ((value.body, value.orelse) if isinstance(value, nodes.IfExp) else (value,))
        if arm is not None and getattr(arm, "value", None) != 1
    ]
    return bool(arms) and all(_DEEPSPEED.search(arm.as_string()) for arm in arms)


def _is_plain(training: Training, backward: Event) -> bool:
    how, by = backward.move.how, backward.move.by
    if how in ("plain", "native"):
        return True
    if how != "accelerator" or by is None or in_accumulate(training, backward):
        return False
    roles = training.facts.roles_of(by)
    if "fabric" in roles:
        return _averages(training.facts, by)
    return "accelerator" in roles and accelerator_accumulates(training.facts, by) is False


def _averages(facts: Facts, fabric: Node) -> bool:
    """Whether Fabric runs DDP: several devices, and no other strategy asked for."""
    for origin in facts.origins(fabric):
        given = _keywords(origin.call) if isinstance(origin, Made) else {"**": fabric}
        devices, strategy = given.get("devices"), given.get("strategy")
        if "**" in given or getattr(devices, "value", None) == 1:
            return False
        if strategy is not None and not str(getattr(strategy, "value", "")).startswith("ddp"):
            return False
    return True


class _Iteration:
    """What one iteration runs, for the question who averages in it."""

    def __init__(self, training: Training, update: Update) -> None:
        self.training = training
        self.facts = training.facts
        self.update = update

    def averaging_model(self) -> Node | None:
        """The wrapped model that averages after each backward; None where nothing does, where
        something tells it when to, or where that cannot be known."""
        found: Node | None = None
        for happening in self.update.happenings:
            node = happening.node
            if _is_switch(node):
                return None
            if isinstance(node, nodes.Call) and self.training.walker.may_run(happening.unit):
                roles = self._wrapping_roles(node.func)
                if roles & _OWN_AFFAIR:
                    return None
                if roles & _WRAPPED and found is None:
                    found = node.func
        if any(_is_switch(part) for part in self._around()):
            return None
        found = found or self._by_its_parameters()
        if found is None or self._averages_otherwise(found):
            return None
        return found

    def _wrapping_roles(self, func: Node) -> frozenset[str]:
        if not isinstance(func, nodes.Name | nodes.Attribute):
            return frozenset()
        return self.facts.roles_of(func)

    def _around(self) -> Iterator[Node]:
        """The context managers around the loop, and what they are chosen from."""
        for expression, _ in with_items(self.update.node):
            yield from walk(expression)

    def _by_its_parameters(self) -> Node | None:
        for step in self.update.steps:
            if step.move.target is None:
                continue
            for origin in self.facts.origins(step.move.target):
                for module in self.training.owners.held_by(origin).modules:
                    if self.facts.roles.role(module) in _WRAPPED:
                        return step.move.target
        return None

    def _averages_otherwise(self, model: Node) -> bool:
        """apex with ``delay_allreduce`` and the plugins of Accelerate average their own way."""
        made = [o for o in self.facts.origins(model) if isinstance(o, Made)]
        flags = [_keywords(o.call) for o in made if self.facts.roles.role(o) == "ddp"]
        if any(_is_true(given.get("delay_allreduce")) for given in flags):
            return True
        return any(
            plugin in _keywords(call)
            for call in self._accelerators
            for plugin in ("fsdp_plugin", "deepspeed_plugin", "megatron_lm_plugin")
        )

    @cached_property
    def _accelerators(self) -> list[nodes.Call]:
        return [
            o.call
            for call, _ in self.facts.calls
            for o in self.facts.values.of(call)
            if isinstance(o, Made) and o.call is call and self.facts.roles.role(o) == "accelerator"
        ]


def _keywords(call: nodes.Call) -> dict[str, Node]:
    """Keyword arguments by name; what is handed on in a dictionary is under ``**``."""
    return {keyword.arg or "**": keyword.value for keyword in call.keywords}


def _is_true(node: Node | None) -> bool:
    return isinstance(node, nodes.Const) and node.value is True


def _is_switch(node: Node) -> bool:
    if isinstance(node, nodes.Call) and getattr(node.func, "attrname", "") == "accumulate":
        return True
    name = getattr(node, "attrname", None)
    if name is None and isinstance(node, nodes.Keyword):
        name = node.arg
    return name in _SWITCHES


# -- too late ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class LateNoSync(Spot):
    """A ``with`` that asks for no averaging when the forward has been: it stands at the with."""

    context: Node
    backward: Event
    made: Node

    @property
    def context_text(self) -> str:
        return source(self.context)

    @property
    def loss_text(self) -> str:
        return source(self.made)

    @property
    def fix(self) -> Fix | None:
        """Enter it before the forward, where that and the ``with`` stand in one block."""
        region = self.node
        stretch = self._from_forward()
        if not isinstance(region, nodes.With) or len(region.items) != 1 or not stretch:
            return None
        file = self.facts.values.module_of(region).source
        line, inside = region.fromlineno or 1, region.body[0]
        begin = region.col_offset or 0
        unit = file.lines[(inside.fromlineno or 1) - 1][begin : inside.col_offset]
        on_one_line = (self.context.end_lineno or line) == line < (inside.fromlineno or line)
        if unit.strip() or not on_one_line or _binds(stretch, self.context):
            return None
        head = file.lines[line - 1].strip()
        edits = [
            Edit(file.place(line, 0, line + 1, 0), ""),
            *_entered(self.facts, stretch, head, unit, line),
        ]
        return Fix(f"Enter `{self.context_text}` before the forward", tuple(edits), safe=False)

    def _from_forward(self) -> list[Node]:
        """The statements between the forward of the wrapper and the ``with``, in its block."""
        wrappers = {
            source(part.func.expr)
            for part in walk(self.context)
            if isinstance(part, nodes.Call)
            and isinstance(part.func, nodes.Attribute)
            and part.func.attrname == "no_sync"
        }
        block = block_of(self.node)
        if len(wrappers) != 1 or self.node not in block:
            return []
        before = block[: block.index(self.node)]
        (wrapper,) = wrappers
        running = [index for index, one in enumerate(before) if _calls(one, wrapper)]
        return before[running[0] :] if running else []

    @property
    def chain(self) -> tuple[Related, ...]:
        return (
            self.facts.related(self.made, "the forward is over when this is made"),
            self.facts.related(self.backward.node, "the backward that averages all the same"),
        )


def late_no_syncs(training: Training) -> Iterator[LateNoSync]:
    """``no_sync()`` around a backward whose forward stands before it."""
    contexts = Contexts(training.facts)
    seen: set[Node] = set()
    for update in training.updates:
        for backward in update.events("backward"):
            for context, region, frame in backward.contexts:
                if region in seen or not contexts.holds_back(context, frame):
                    continue
                made = _Making(training.facts, region, frame).made_before(backward)
                if made is not None:
                    seen.add(region)
                    yield LateNoSync(training.facts, region, context, backward, made)


class Contexts:
    """Which context managers tell a DDP model not to average."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts

    def holds_back(self, context: Node, frame: Frame, depth: int = 0) -> bool:
        """Whether entering it tells a DDP model not to average, on some condition perhaps."""
        if depth > 4:
            return False
        written = resolve(context, frame)
        context, frame = written.node, written.frame
        match context:
            case nodes.IfExp(body=body, orelse=orelse):
                return any(self.holds_back(part, frame, depth + 1) for part in (body, orelse))
            case nodes.Name():
                bindings = reaching(frame.unit, context.name, context)
                return any(
                    b.path == ()
                    and b.value is not None
                    and self.holds_back(b.value, frame, depth + 1)
                    for b in bindings
                )
            case nodes.Attribute(attrname="no_sync" | "no_backward_sync", expr=model):
                return self._is_ddp(model)
            case nodes.Call(func=func):
                entered = self.facts.graph.targets_of(context)
                if entered:
                    return any(self._yields_in_no_sync(unit, depth) for unit in entered)
                return self.holds_back(func, frame, depth + 1)
        return False

    def _yields_in_no_sync(self, unit: Unit, depth: int) -> bool:
        switched = unit.module.attribute_stores.get("require_backward_grad_sync", ())
        return bool(unit.yields) and (
            any(store_unit is unit for store_unit, _, _ in switched)
            or any(
                self.holds_back(context, Frame(unit), depth + 1)
                for node in unit.yields
                for context, _ in with_items(node)
            )
        )

    def _is_ddp(self, model: Node) -> bool:
        """FSDP decides in its backward; of what is not known only DDP has such a method."""
        roles = self.facts.roles_of(model)
        if roles & {"ddp", "prepared module", "accelerator", "fabric"}:
            return True
        return not roles & {"fsdp", "engine", "module"}


class _Making:
    """How the loss of a backward inside a region came about: before it or in it."""

    def __init__(self, facts: Facts, region: nodes.With, frame: Frame) -> None:
        self.facts = facts
        self.region = region
        self.frame = frame

    def made_before(self, backward: Event) -> Node | None:
        """What made the loss before the region; None where a forward runs inside, or it cannot
        be told."""
        target = backward.move.target
        if target is None or backward.frame.unit is not self.frame.unit:
            return None
        found: list[Node] = []
        if not self._trace(target, found, set(), 0):
            return None
        return found[0] if found else None

    def _trace(self, node: Node, before: list[Node], seen: set[int], depth: int) -> bool:
        """Collect what was made before the region; False where a forward may be inside of it."""
        for part in walk(node):
            if isinstance(part, nodes.Call) and self._may_be_forward(part):
                return False
            if isinstance(part, nodes.Name) and not self._trace_name(part, before, seen, depth):
                return False
        return True

    def _trace_name(
        self, name: nodes.Name, before: list[Node], seen: set[int], depth: int
    ) -> bool:
        unit = self.frame.unit
        if name.name not in unit.bindings or depth > 8:
            return True
        for binding in reaching(unit, name.name, name):
            if id(binding) in seen:
                continue
            seen.add(id(binding))
            if binding.path == ("param",):
                if name.name != unit.self_name and self._carries_graph(name):
                    before.append(binding.node)
                continue
            value = binding.value
            if value is None or binding.path[:1] == ("import",):
                continue
            made_at = statement(binding.node)
            if is_within(made_at, self.region):
                if not self._trace(value, before, seen, depth + 1):
                    return False
            elif self._is_made_of_forward(value, depth):
                before.append(made_at)
        return True

    def _carries_graph(self, name: nodes.Name) -> bool:
        """A loss that is handed in: its forward is over."""
        return "loss" in name.name

    def _is_made_of_forward(self, value: Node, depth: int) -> bool:
        """Whether a forward of the model went into a value that was made before."""
        if depth > 6:
            return False
        for part in walk(value):
            if isinstance(part, nodes.Call) and self._is_forward(part):
                return True
            if isinstance(part, nodes.Name) and part.name in self.frame.unit.bindings:
                for binding in reaching(self.frame.unit, part.name, part):
                    if (
                        binding.value is not None
                        and binding.path[:1]
                        not in (
                            ("param",),
                            ("import",),
                            ("iter",),
                        )
                        and binding.value is not value
                        and self._is_made_of_forward(binding.value, depth + 1)
                    ):
                        return True
        return False

    def _is_forward(self, call: nodes.Call) -> bool:
        """A call of the model, or of a method of the project that reaches one."""
        roles = self.facts.roles_of(call.func)
        if roles & {"ddp", "prepared module"}:
            return True
        name = getattr(call.func, "attrname", getattr(call.func, "name", ""))
        if "forward" in name or name in ("training_step", "model", "net", "module"):
            return True
        if "module" in roles:
            return not _is_criterion(self.facts, call)
        return any(self._reaches_forward(unit, 0) for unit in self.facts.graph.targets_of(call))

    def _reaches_forward(self, unit: Unit, depth: int) -> bool:
        if depth > 4:
            return False
        return any(
            self.facts.roles_of(call.func) & {"ddp", "prepared module"}
            or any(self._reaches_forward(t, depth + 1) for t in self.facts.graph.targets_of(call))
            for call in unit.calls
        )

    def _may_be_forward(self, call: nodes.Call) -> bool:
        """Whether a call inside the region may run the model: yes unless it is known not to."""
        if not is_within(call, self.region):
            return False
        names = self.facts.names(call)
        if any(n.startswith(("torch.", "builtins.", "math.")) for n in names):
            return False
        func = call.func
        if isinstance(func, nodes.Attribute) and func.attrname in _TENSOR_METHODS:
            return False
        if isinstance(func, nodes.Attribute) and func.attrname in ("backward", "scale"):
            return False
        return not _is_criterion(self.facts, call)


_TENSOR_METHODS = frozenset(
    [
        "mean",
        "sum",
        "view",
        "reshape",
        "squeeze",
        "unsqueeze",
        "flatten",
        "float",
        "half",
        "to",
        "cuda",
        "div",
        "mul",
        "detach",
        "item",
    ]
)


def _is_criterion(facts: Facts, call: nodes.Call) -> bool:
    """``nn.CrossEntropyLoss()(...)``, ``F.cross_entropy(...)``: a loss, not the model."""
    for origin in facts.origins(call.func):
        name = _name_of(origin)
        if name.startswith("torch.nn.functional.") or name.endswith("Loss"):
            continue
        return False
    return True


def _name_of(origin: Origin) -> str:
    match origin:
        case Api(name=name) | Folder(name=name) | Made(name=name):
            return name
        case Instance(cls=cls):
            return cls.name
        case Member(of=of) | Result(of=of):
            return _name_of(of)
    return ""


__all__ = ["LateNoSync", "Unsynchronized", "late_no_syncs", "unsynchronized"]
