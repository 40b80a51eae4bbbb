"""Layer 11, sharded: saves in which all ranks take part."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from astroid import nodes

from ddp_lint.finding import Edit, Fix, Level, Related
from ddp_lint.model.facts import Facts, called_name
from ddp_lint.model.guards import Audience
from ddp_lint.model.plugins import possible
from ddp_lint.model.processes import Place, test_text
from ddp_lint.model.tree import Node, position, statement, walk
from ddp_lint.model.wrappers import inner_of, is_narrowed, wrappings

_CHECKPOINT = "torch.distributed.checkpoint."
_SAVES = frozenset(
    f"{_CHECKPOINT}{name}"
    for name in ("save", "async_save", "save_state_dict", "state_dict_saver.save",
                 "state_dict_saver.async_save")
)  # fmt: skip
_GATHERS = frozenset(
    f"{_CHECKPOINT}state_dict.{name}"
    for name in ("get_state_dict", "get_model_state_dict", "get_optimizer_state_dict")
)
_FSDP_METHODS = frozenset(
    {
        "optim_state_dict",
        "full_optim_state_dict",
        "sharded_optim_state_dict",
        "shard_full_optim_state_dict",
    }
)
_ENGINE_METHODS = frozenset({"save_checkpoint", "save_16bit_model", "save_fp16_model"})
_ACCELERATOR_METHODS = frozenset({"save_state", "get_state_dict"})
_PLUGINS = frozenset(
    {"accelerate.FullyShardedDataParallelPlugin", "accelerate.DeepSpeedPlugin",
     "accelerate.utils.FullyShardedDataParallelPlugin", "accelerate.utils.DeepSpeedPlugin"}
)  # fmt: skip
_FSDP = frozenset({"fsdp"})


@dataclass(frozen=True)
class ShardedSave(Place):
    """A call for a save that waits until all ranks make it."""

    node: nodes.Call
    framework: str

    @cached_property
    def who(self) -> Audience:
        return self.facts.ranks.audience(self.node)

    @property
    def on_some_ranks(self) -> bool:
        """Whether ranks are known to be kept away, and others to come."""
        reached = self.who.reached
        return False in reached and True in reached

    @property
    def level(self) -> Level:
        """Under plain DDP, Accelerate's saves of one rank work until somebody shards."""
        if self.framework == "accelerate" and not any(self.facts.calls_to(_PLUGINS)):
            return "warning"
        return "error"

    @cached_property
    def plugins(self) -> tuple[str, ...]:
        """With what the accelerator that saves may shard."""
        assert isinstance(self.node.func, nodes.Attribute)
        return possible(self.facts, self.node.func.expr)

    @property
    def test_text(self) -> str:
        return test_text(self.facts, self.who)

    @property
    def consequence(self) -> str:
        if self.framework == "accelerate":
            plugins = " and ".join(self.plugins)
            return f"under {plugins} they wait for the others until the timeout"
        return "they wait for the others until the timeout"

    @property
    def guards(self) -> tuple[Related, ...]:
        found = []
        if self.who.test is not None:
            found.append(self.facts.related(self.who.test, "this test keeps the other ranks away"))
        if self.who.site is not None:
            call = self.who.site.call
            found.append(self.facts.related(call, f"`{called_name(call)}` is called here"))
        return tuple(found)

    @property
    def releasing(self) -> Fix | None:
        """The call out of its guard, where it is all that the guard holds."""
        at = statement(self.node)
        guard = at.parent
        if not isinstance(guard, nodes.If) or guard.test is not self.who.test:
            return None
        if not isinstance(at, nodes.Expr | nodes.Assign) or at.value is not self.node:
            return None  # the rest of the statement is for one rank
        if guard.orelse or len(guard.body) != 1 or guard.body[0] is not at:
            return None
        edits = _dedented(self.facts, guard, at)
        return Fix("Call it on all ranks", edits, safe=False) if edits else None


def sharded_saves(facts: Facts) -> Iterator[ShardedSave]:
    """Calls that all ranks have to make, leaving out those that only feed another one."""
    found = [
        s for s in _every(facts) if s.on_some_ranks and (s.framework != "accelerate" or s.plugins)
    ]
    written = [s for s in found if facts.names(s.node) & _SAVES]
    for save in found:
        if facts.names(save.node) & _GATHERS and any(w.unit is save.unit for w in written):
            continue
        yield save


def _every(facts: Facts) -> Iterator[ShardedSave]:
    for call, _ in facts.calls:
        names = facts.names(call)
        if names & (_SAVES | _GATHERS):
            yield ShardedSave(facts, call, "torch")
            continue
        func = call.func
        if not isinstance(func, nodes.Attribute):
            continue
        if (
            func.attrname in _FSDP_METHODS and any("FullyShardedDataParallel" in n for n in names)
        ) or (func.attrname == "state_dict" and _is_fsdp(facts, func.expr)):
            yield ShardedSave(facts, call, "fsdp")
        elif func.attrname in _ENGINE_METHODS and facts.roles_of(func.expr) & {"engine"}:
            yield ShardedSave(facts, call, "deepspeed")
        elif func.attrname in _ACCELERATOR_METHODS and facts.roles_of(func.expr) & {"accelerator"}:
            yield ShardedSave(facts, call, "accelerate")


def _is_fsdp(facts: Facts, node: Node) -> bool:
    """An FSDP module of the first kind: it gathers where its state is asked for."""
    return (
        any(
            "FullyShardedDataParallel" in getattr(origin, "name", "FullyShardedDataParallel")
            for origin in wrappings(facts, node, _FSDP)
        )
        and inner_of(facts, node) is None
        and not is_narrowed(facts, node)
    )


def _dedented(facts: Facts, guard: nodes.If, body: Node) -> tuple[Edit, ...]:
    """Edits that take ``if test:`` away and move its only statement out."""
    if any(
        isinstance(part, nodes.Const | nodes.JoinedStr) and part.end_lineno != part.lineno
        for part in walk(body)
    ):
        return ()
    file = facts.values.module_of(guard).source
    top, column = position(guard)
    first, inside = position(body)
    if first == top or not file.lines[top - 1].lstrip().startswith("if"):
        return ()
    if any("#" in line for line in file.lines[top - 1 : first - 1]):
        return ()
    edits = [Edit(file.place(top, column, first, inside), "")]
    for line in range(first + 1, (body.end_lineno or first) + 1):
        text = file.lines[line - 1]
        if text[: inside - column].strip():
            return ()
        edits.append(Edit(file.place(line, 0, line, min(inside - column, len(text))), ""))
    return tuple(edits)
