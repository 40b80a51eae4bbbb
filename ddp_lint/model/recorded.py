"""Subject: modules whose calls add to the graph, told from those that have nothing to learn."""

from __future__ import annotations

from typing import Literal

from astroid import nodes

from ddp_lint.model.facts import Facts
from ddp_lint.model.grad_mode import GradMode
from ddp_lint.model.modules import Class, Unit
from ddp_lint.model.origins import (
    Api,
    Code,
    Expression,
    File,
    Folder,
    Instance,
    Made,
    Origin,
    Origins,
    Type,
)
from ddp_lint.model.roles import role_of_name
from ddp_lint.model.tree import Node

Answer = Literal["yes", "no", "maybe"]

MODULES = frozenset({"module", "ddp", "fsdp", "dp", "prepared module"})
_WEIGHTS = frozenset({"torch.nn.Parameter", "torch.nn.parameter.Parameter"})
#: Layers of ``torch.nn`` without weights, by how their names begin or end.
_WEIGHTLESS = (
    ("Avg", "Max", "Adaptive", "Lp", "Fractional", "Dropout", "Feature", "Alpha", "Upsample",
     "Upsampling", "Pixel", "Zero", "Reflection", "Replication", "Circular", "Constant", "ReLU",
     "LeakyReLU", "Sigmoid", "Tanh", "GELU", "SiLU", "Mish", "Hard", "ELU", "CELU", "SELU", "Soft",
     "LogSoftmax", "Flatten", "Unflatten", "Identity", "Cosine", "Pairwise", "Fold", "Unfold"),
    ("Loss", "Accuracy"),
)  # fmt: skip
#: Bases that bring neither weights nor layers.
_PLAIN_BASES = frozenset({"Module", "ABC", "Generic", "Protocol", "object"})


class Recorded:
    """What a call of a module does to the graph, as far as its class tells."""

    def __init__(self, facts: Facts, mode: GradMode) -> None:
        self.facts = facts
        self.mode = mode
        self._known: dict[int, Answer] = {}

    def by(self, origins: Origins) -> Answer:
        """Whether a forward pass of any of these is recorded, where recording is on."""
        return _any({self._by(origin) for origin in origins})

    def _by(self, origin: Origin) -> Answer:
        if isinstance(origin, Instance) and self._is_switched_off(origin.cls):
            return "no"
        return self._has_weights(origin)

    def _is_switched_off(self, cls: Class) -> bool:
        """Whether ``forward`` has ``no_grad`` around all that it does."""
        above = self.facts.values.mro(cls)
        forward = next((c.methods["forward"] for c in above if "forward" in c.methods), None)
        if forward is None:
            return False
        body = [one for one in forward.statements if not isinstance(one, nodes.Pass)]
        inside = body[0].body if len(body) == 1 and isinstance(body[0], nodes.With) else body
        return bool(inside) and self.mode.within(inside[0], forward) == "off"

    # -- weights ----------------------------------------------------------------------------

    def _has_weights(self, origin: Origin) -> Answer:
        match origin:
            case Made(name=name) if name in _WEIGHTS:
                return "yes"
            case Made(name=name) if name.startswith("torch.nn.") and _is_weightless(name):
                return "no"
            case Instance(cls=cls):
                return self._of_class(cls) if self.facts.roles.role(origin) in MODULES else "no"
            case Made(name=name) if self.facts.roles.role(origin) not in MODULES:
                return "no" if name.startswith(("torch.", "numpy.", "builtins.")) else "maybe"
            case Api() | Code() | Type() | File() | Folder() | Expression():
                return "no"
        return "yes" if self.facts.roles.role(origin) in MODULES else "maybe"

    def _of_class(self, cls: Class) -> Answer:
        known = self._known.get(id(cls))
        if known is None:
            self._known[id(cls)] = "no"  # a class that holds itself adds nothing by that
            known = self._known[id(cls)] = _any(
                {self._of_base(base) for base in self.facts.values.external_bases(cls)}
                | {self._of_own(at) for at in self.facts.values.mro(cls)}
            )
        return known

    def _of_base(self, base: str) -> Answer:
        last = base.rpartition(".")[2]
        if last in _PLAIN_BASES or (base.startswith("torch.nn.") and _is_weightless(base)):
            return "no"
        return "yes" if role_of_name(base) in MODULES else "maybe"

    def _of_own(self, cls: Class) -> Answer:
        """What the methods of a class store in the object."""
        answers: set[Answer] = {_registered(unit) for unit in cls.methods.values()}
        for stores in cls.attributes.values():
            for unit, binding in stores:
                bound = frozenset(self.facts.values.bound(binding, unit))
                found = self.facts.graph.expand(bound)
                answers.add(_any({self._has_weights(origin) for origin in found} or {"maybe"}))
        return _any(answers)


def _registered(unit: Unit) -> Answer:
    """Weights that are given a name by a call."""
    names = {str(getattr(call.func, "attrname", _name(call.func))) for call in unit.calls}
    if "register_parameter" in names:
        return "yes"
    return "maybe" if names & {"add_module", "register_module", "setattr"} else "no"


def _name(node: Node) -> str:
    return node.name if isinstance(node, nodes.Name) else ""


def _is_weightless(name: str) -> bool:
    beginnings, endings = _WEIGHTLESS
    last = name.rpartition(".")[2]
    return last.startswith(beginnings) or last.endswith(endings)


def _any(answers: set[Answer]) -> Answer:
    if "yes" in answers:
        return "yes"
    return "maybe" if "maybe" in answers or not answers else "no"
