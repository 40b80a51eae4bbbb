"""Subject: whether autograd records what runs at a place: by contexts, decorators and callers."""

from __future__ import annotations

from typing import Literal

from astroid import nodes

from ddp_lint.model.facts import Facts
from ddp_lint.model.flow import with_items
from ddp_lint.model.frames import Frame
from ddp_lint.model.modules import Unit
from ddp_lint.model.origins import (
    Api,
    Code,
    Expression,
    Folder,
    Made,
    Member,
    Origin,
    Result,
    Type,
)
from ddp_lint.model.torch_api import EXTERNAL, NO_GRAD
from ddp_lint.model.tree import Node, dotted, precedes

Mode = Literal["on", "off", "unknown"]

_SETTING = frozenset({"torch.set_grad_enabled", "torch.autograd.set_grad_enabled",
                      "torch.autograd.grad_mode.set_grad_enabled"})  # fmt: skip
_ENABLING = frozenset({"torch.enable_grad", "torch.autograd.enable_grad"})
#: Methods of contexts that have nothing to do with recording.
_OTHER_METHODS = frozenset({"no_sync", "autocast", "join", "accumulate", "record_function",
                            "scope", "main_process_first",
                            "local_main_process_first"})  # fmt: skip
#: Decorators that leave a function as it is in this respect.
_PLAIN_DECORATORS = frozenset(
    {"staticmethod", "classmethod", "property", "cached_property", "wraps", "override", "overload",
     "abstractmethod", "contextmanager", "record", "compile", "main"}
)  # fmt: skip


class GradMode:
    """Where gradients are recorded in one program."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self._units: dict[int, Mode] = {}

    def at(self, node: Node) -> Mode:
        """Whether ``node`` records, taking all callers of its unit together."""
        unit = self.facts.values.unit_of(node)
        here = self.within(node, unit)
        return here if here is not None else self._of_callers(unit)

    def on_way(self, node: Node, frame: Frame) -> Mode:
        """As ``at``, on one known way of calls as far as it goes."""
        for at in frame.outward:
            here = self.within(node, at.unit)
            if here is not None:
                return here
            if at.call is None:
                return self._of_callers(at.unit)
            node = at.call
        return "on"

    def within(self, node: Node, unit: Unit) -> Mode | None:
        """What the contexts around ``node`` and the decorators of its unit say; None: nothing."""
        for context, _ in with_items(node):
            mode = self.of_context(context)
            if mode is not None:
                return mode
        for call in unit.calls:
            entered = getattr(call.func, "attrname", "") == "enter_context" and call.args
            if entered and precedes(call, node):
                mode = self.of_context(call.args[0])
                if mode is not None:
                    return mode
        for decorator in unit.decorators:
            mode = self._of_decorator(decorator)
            if mode is not None:
                return mode
        return None

    def _of_callers(self, unit: Unit) -> Mode:
        known = self._units.get(id(unit))
        if known is not None:
            return known
        self._units[id(unit)] = "off"  # a recursive call adds nothing
        modes = {self.at(site.call) for site in self.facts.graph.sites_of(unit)}
        if "on" in modes or not modes:
            found: Mode = "on"
        else:
            found = "unknown" if "unknown" in modes else "off"
        self._units[id(unit)] = found
        return found

    # -- contexts ---------------------------------------------------------------------------

    def of_context(self, context: Node, depth: int = 0) -> Mode | None:
        """What entering a context manager does to recording; None: nothing."""
        if isinstance(context, nodes.IfExp):
            modes = {self.of_context(part, depth) for part in (context.body, context.orelse)}
            return modes.pop() if len(modes) == 1 else "unknown"
        if isinstance(context, nodes.Call) and depth < 4:
            entered = [u for u in self.facts.graph.targets_of(context) if u.is_generator]
            if entered:
                return self._of_generators(entered, depth)
        modes = {self._of_origin(origin) for origin in self.facts.origins(context)}
        if "unknown" in modes or not modes:
            return "unknown"
        return modes.pop() if len(modes) == 1 else "unknown"

    def _of_generators(self, units: list[Unit], depth: int) -> Mode | None:
        modes = {
            self.of_context(context, depth + 1)
            for unit in units
            for node in unit.yields
            for context, _ in with_items(node)
        }
        modes.discard(None)
        return modes.pop() if len(modes) == 1 else ("unknown" if modes else None)

    def _of_origin(self, origin: Origin) -> Mode | None:
        match origin:
            case Made(name=name) | Api(name=name) if name in NO_GRAD:
                return "off"
            case Made(name=name) if name in _ENABLING:
                return "on"
            case Made(name=name, call=call) if name in _SETTING:
                value = call.args[0] if call.args else None
                if isinstance(value, nodes.Const):
                    return "on" if value.value else "off"
                return "unknown"
            case Made(name=name) | Folder(name=name):
                last = name.rpartition(".")[2]
                told = name.partition(".")[0] in EXTERNAL  # others may do anything
                return None if told and not ("grad" in last or "inference" in last) else "unknown"
            case Result(of=Member(name=name, of=owner)) | Member(name=name, of=owner):
                if name in _OTHER_METHODS or isinstance(owner, Made | Api):
                    return None
        return "unknown"

    def _of_decorator(self, decorator: Node) -> Mode | None:
        func = decorator.func if isinstance(decorator, nodes.Call) else decorator
        if dotted(func).rpartition(".")[2] in _PLAIN_DECORATORS:
            return None
        origins = self.facts.values.of(decorator)
        if any(isinstance(o, Code | Type | Expression) for o in origins):
            return "unknown"
        modes = {self._of_origin(origin) for origin in origins}
        modes.discard(None)
        return modes.pop() if len(modes) == 1 else ("unknown" if modes else None)
