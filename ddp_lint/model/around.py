"""Layer 11, around: losses that flow through the model inside a DDP wrapper, around its hooks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from astroid import nodes

from ddp_lint.finding import Edit, Fix, Related
from ddp_lint.model.facts import Facts, Spot
from ddp_lint.model.feeding import Feeding, frame_of, without_gradients
from ddp_lint.model.flow import conditions
from ddp_lint.model.frames import Frame, key, origins_in, resolve
from ddp_lint.model.origins import Made, Origin, Result
from ddp_lint.model.steps import Happening, StepLoop
from ddp_lint.model.torch_api import COLLECTIVES
from ddp_lint.model.tree import Node, ancestors, source, walk
from ddp_lint.model.wrappers import bindings_of, inner_of, kind

_KINDS = frozenset({"ddp", "prepared"})
#: Methods of a module that compute nothing with its parameters.
_BOOKKEEPING = frozenset(
    {"parameters", "named_parameters", "state_dict", "load_state_dict", "train", "eval", "to",
     "cuda", "cpu", "half", "float", "zero_grad", "requires_grad_", "buffers", "named_buffers",
     "modules", "named_modules", "children", "named_children", "apply", "copy_", "no_sync",
     "save_pretrained", "register_forward_hook", "register_buffer", "items", "keys", "values",
     "add_module", "get_parameter", "set_input_embeddings", "gradient_checkpointing_enable",
     "enable_input_require_grads", "__class__", "share_memory", "type", "double", "bfloat16",
     "get_input_embeddings"}
)  # fmt: skip
_DEEPEST = 6


@dataclass(frozen=True)
class TakenOut:
    """A callable that is (a part of) the model inside ``wrapper``, taken out in ``frame``."""

    wrapper: Node
    frame: Frame


@dataclass(frozen=True)
class AroundCall(Spot):
    """A call of the inner model of ``wrapper`` whose value goes into a backward pass."""

    taken: TakenOut
    loop: StepLoop
    happening: Happening

    @property
    def is_direct(self) -> bool:
        """Whether the inner model is called here, not handed to who calls it."""
        return self.node is self.happening.node

    @property
    def called(self) -> Node:
        assert isinstance(self.happening.node, nodes.Call)
        return self.happening.node.func

    @property
    def called_text(self) -> str:
        return source(self.called) if self.is_direct else f"{self.wrapper_text}.module"

    @property
    def wrapper_text(self) -> str:
        return source(self.taken.wrapper)

    @property
    def is_namesake(self) -> bool:
        """Whether the inner model bears the wrapper's own name: no name is left to call it by."""
        return self.called_text == self.wrapper_text

    @property
    def where(self) -> str:
        """Where a namesake was taken out of the wrapper."""
        if not self.is_namesake:
            return ""
        place = self.facts.place(self.taken.wrapper)
        return f" (taken out of it at {place.path}:{place.line})"

    @property
    def places(self) -> tuple[Related, ...]:
        found = []
        if not _contains(self.node, self.taken.wrapper):
            found.append(
                self.facts.related(self.taken.wrapper, "the inner model is taken out here")
            )
        for origin in self.facts.origins(self.taken.wrapper):
            if kind(self.facts, origin) in _KINDS and isinstance(origin, Made | Result):
                found.append(self.facts.related(origin.call, "it is wrapped here"))
        found.extend(self.facts.chain(self.loop, self.happening))
        return tuple(found)

    @property
    def calling_the_wrapper(self) -> Fix | None:
        """``model(x)`` for ``model.module(x)``."""
        func = self.called
        if not self.is_direct or not isinstance(func, nodes.Attribute):
            return None
        if func.attrname != "module" or func.expr is not self.taken.wrapper:
            return None
        wrapper = self.taken.wrapper
        file = self.facts.values.module_of(func).source
        start = wrapper.end_lineno or 1, wrapper.end_col_offset or 0
        end = func.end_lineno or 1, func.end_col_offset or 0
        return Fix("Call the wrapper", (Edit(file.place(*start, *end), ""),), safe=False)


def _contains(outer: Node, node: Node) -> bool:
    return any(node is one for one in walk(outer))


def around_calls(facts: Facts) -> Iterator[AroundCall]:
    """Calls around a wrapper that are backpropagated, where the wrapper itself is not."""
    found: dict[int, AroundCall] = {}
    for loop in facts.steps.loops:
        for call in _of_loop(facts, loop):
            if id(call.node) not in found or call.is_direct:
                found[id(call.node)] = call
    yield from found.values()


def _of_loop(facts: Facts, loop: StepLoop) -> Iterator[AroundCall]:
    feeding = facts.once(Feeding)
    candidates: list[tuple[Happening, TakenOut]] = []
    for happening in loop.calls:
        node = happening.node
        assert isinstance(node, nodes.Call)
        if isinstance(node.func, nodes.Attribute) and node.func.attrname in _BOOKKEEPING:
            continue
        taken = _taken_out(facts, node.func, frame_of(happening), 0)
        if taken is not None and not without_gradients(facts, happening):
            candidates.append((happening, taken))
    if not candidates or _averages_itself(facts, loop):
        return
    for happening, taken in candidates:
        fed = feeding.backwards(happening)
        if fed and not _is_called_too(facts, loop, taken, fed):
            yield AroundCall(facts, _place(happening, taken), taken, loop, happening)


def _place(happening: Happening, taken: TakenOut) -> Node:
    """The call itself, or the one that hands the inner model to a function."""
    level = len(taken.frame.chain)
    frames = list(frame_of(happening).outward)
    for frame in frames:
        if (
            frame.call is not None
            and len(frame.chain) == level + 1
            and level < len(frames) - 1
            and frame.caller is not None
            and frame.caller.unit is taken.frame.unit
        ):
            return frame.call
    return happening.node


def _taken_out(facts: Facts, func: Node, frame: Frame, depth: int) -> TakenOut | None:
    if depth > _DEEPEST:
        return None
    match func:
        case nodes.Attribute(attrname="module"):
            if _is_wrapper(facts, func.expr, frame):
                return TakenOut(func.expr, frame)
            return None
        case nodes.Attribute():
            inner = inner_of(facts, func)
            if inner is not None and not isinstance(func.expr, nodes.Attribute | nodes.Call):
                unit = facts.values.unit_of(inner)
                if _is_wrapper(facts, inner, Frame(unit)):
                    return TakenOut(inner, Frame(unit))
            return _taken_out(facts, func.expr, frame, depth + 1)
        case nodes.Call():
            inner = inner_of(facts, func)
            if inner is not None and _is_wrapper(facts, inner, frame):
                return TakenOut(inner, frame)
            return None
        case nodes.Name():
            return _taken_out_by_name(facts, func, frame, depth)
    return None


def _taken_out_by_name(
    facts: Facts, func: nodes.Name, frame: Frame, depth: int
) -> TakenOut | None:
    written = resolve(func, frame)
    if written.node is not func:
        return _taken_out(facts, written.node, written.frame, depth + 1)
    for binding, unit in bindings_of(facts, func):
        if binding.path or binding.value is None:
            continue
        inner = inner_of(facts, binding.value)
        at = frame if unit is frame.unit else Frame(unit)
        if inner is not None and _is_wrapper(facts, inner, at):
            return TakenOut(inner, at)
    return None


def _is_wrapper(facts: Facts, node: Node, frame: Frame) -> bool:
    """Whether a value whose ``module`` is taken is a DDP wrapper: by its origin, or because the
    other arm of a branch does the same without ``.module``."""
    origins = origins_in(facts.graph, node, frame)
    if any(kind(facts, origin) in _KINDS for origin in origins):
        return True
    if any(kind(facts, origin) or isinstance(origin, Made) for origin in origins):
        return False
    return _has_twin(node) or _is_asked(node)


def _has_twin(node: Node) -> bool:
    """``if distributed: w.module.f(x)``, ``else: w.f(x)``."""
    text = node.as_string()
    for child, parent in ancestors(node):
        if isinstance(parent, nodes.If | nodes.IfExp):
            inside = parent.body if isinstance(parent.body, list) else [parent.body]
            if not any(child is one for one in inside):
                continue
            others = parent.orelse if isinstance(parent.orelse, list) else [parent.orelse]
            if not others and isinstance(parent, nodes.If):
                others = _following(parent)
            for other in others:
                if other is not None and f"{text}." in other.as_string():
                    return f"{text}.module" not in other.as_string()
    return False


def _following(node: nodes.If) -> list[Node]:
    """What runs where the test of an ``if`` that returns does not hold."""
    block = getattr(node.parent, "body", [])
    if not isinstance(node.body[-1], nodes.Return) or node not in block:
        return []
    return list(block[block.index(node) + 1 :])


def _is_asked(node: Node) -> bool:
    text = node.as_string()
    return any(
        condition.holds
        and isinstance(condition.test, nodes.Call)
        and condition.test.as_string().startswith(f"isinstance({text}, ")
        and (
            "DDP" in condition.test.as_string() or "DistributedData" in condition.test.as_string()
        )
        for condition in conditions(node)
    )


def _is_called_too(facts: Facts, loop: StepLoop, taken: TakenOut, fed: frozenset[int]) -> bool:
    """Whether the wrapper itself runs forward for the same backward pass: its hooks see it."""
    feeding = facts.once(Feeding)
    wrapped = _wrappings(facts, taken.wrapper, taken.frame)
    name = key(taken.wrapper, taken.frame)
    for happening in loop.calls:
        node = happening.node
        assert isinstance(node, nodes.Call)
        func = node.func
        if isinstance(func, nodes.Attribute) and func.attrname == "forward":
            func = func.expr
        if not isinstance(func, nodes.Name | nodes.Attribute | nodes.Subscript):
            continue
        frame = frame_of(happening)
        mine = _wrappings(facts, func, frame)
        if not (wrapped & mine if wrapped else key(func, frame) == name):
            continue
        if _taken_out(facts, func, frame, 0) is not None or without_gradients(facts, happening):
            continue
        if feeding.backwards(happening) & fed:
            return True
    return False


def _wrappings(facts: Facts, node: Node, frame: Frame) -> set[Origin]:
    return {o for o in origins_in(facts.graph, node, frame) if kind(facts, o) in _KINDS}


def _averages_itself(facts: Facts, loop: StepLoop) -> bool:
    """Whether the program sends gradients on its own, in the loop or after a window of it."""
    return any(_sends_gradients(facts, happening) for happening in _calls_of_update(facts, loop))


def _calls_of_update(facts: Facts, loop: StepLoop) -> Iterator[Happening]:
    """What is called until the optimizer steps: the loop may be one over micro-batches."""
    yield from loop.calls
    at: Node = loop.node
    for outer, unit in () if loop.is_hook else loop.outer_loops:
        if facts.steps.loop_steps(at):
            return
        yield from StepLoop(facts.steps, outer, unit).calls
        at = outer


def _sends_gradients(facts: Facts, happening: Happening) -> bool:
    node = happening.call
    reduces = "all_reduce" in getattr(node.func, "attrname", "")
    if not reduces and not facts.names(node) & COLLECTIVES:
        return False
    if any("grad" in a.as_string() for a in ([node] if reduces else node.args[:1])):
        return True
    return bool(node.args) and any(
        name.endswith(".grad")
        for name in facts.once(Feeding).names_in(node.args[0], frame_of(happening))
    )
