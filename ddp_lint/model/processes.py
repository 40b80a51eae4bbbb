"""Layer 10, processes: who comes to a place in a program of several processes."""

from __future__ import annotations

from dataclasses import dataclass

from astroid import nodes

from ddp_lint.finding import Related
from ddp_lint.model.calls import Site
from ddp_lint.model.facts import Facts, Spot, called_name
from ddp_lint.model.guards import PER_NODE, RANKS, Audience
from ddp_lint.model.modules import Unit
from ddp_lint.model.origins import Param
from ddp_lint.model.torch_api import INIT_GROUP
from ddp_lint.model.tree import Node, dotted, source


def has_gpus(facts: Facts) -> bool:
    """Whether the processes work on GPUs: their group does, or the program speaks of CUDA."""
    backends = [
        node
        for call, _ in facts.calls_to(INIT_GROUP)
        for node in [k.value for k in call.keywords if k.arg == "backend"] or call.args[:1]
    ]
    texts = [node.as_string() for node in backends]
    if any("nccl" in text for text in texts):
        return True
    if texts and all(text.strip("'\"").startswith("gloo") for text in texts):
        return False
    return any(b"cuda" in module.source.raw for module in facts.modules)


def is_told_its_gpu(facts: Facts) -> bool:
    """Whether each process sees one GPU only: the program says so in its environment."""
    for unit in facts.units:
        for store in unit.subscript_stores:
            if getattr(store.slice, "value", None) == "CUDA_VISIBLE_DEVICES":
                return True
    return False


def has_one_node(facts: Facts) -> bool:
    """Whether no second node can join: the group is told as many processes as a node has, or
    the number that one call of ``mp.spawn`` gives each process is its rank."""
    calls = [call for call, _ in facts.calls_to(INIT_GROUP)]
    return bool(calls) and all(_is_on_one_node(facts, call) for call in calls)


def _is_on_one_node(facts: Facts, call: nodes.Call) -> bool:
    told = {keyword.arg: keyword.value for keyword in call.keywords}
    size = told.get("world_size", call.args[3] if len(call.args) > 3 else None)
    if size is not None and all(facts.guards.value(size, rank) == PER_NODE for rank in RANKS):
        return True
    given = told.get("rank", call.args[4] if len(call.args) > 4 else None)
    if isinstance(given, nodes.Name | nodes.Attribute) and "local_rank" in dotted(given):
        return True  # with a second node, two processes would have each rank
    origins = facts.origins(given)
    return bool(origins) and all(
        isinstance(origin, Param) and facts.graph.is_spawn_index(origin.unit, origin.name)
        for origin in origins
    )


@dataclass(frozen=True)
class Place(Spot):
    """A place in a program of several processes, and who comes there."""

    @property
    def audience(self) -> Audience:
        return self.facts.ranks.audience(self.node)

    @property
    def unit(self) -> Unit:
        return self.facts.values.unit_of(self.node)

    @property
    def way(self) -> tuple[Site, ...] | None:
        """The calls, innermost first, by which all ranks come here."""
        if not self.facts.ranks.is_run(self.unit):
            return None
        return self.facts.ranks.way_of_all(self.node)

    @property
    def on_every_rank(self) -> bool:
        return self.way is not None and all(self.audience.reached)

    @property
    def callers(self) -> tuple[Related, ...]:
        """The way by which all ranks come here, for people."""
        return tuple(
            self.facts.related(
                site.call,
                f"`{called_name(site.call)}` starts the ranks here"
                if site.spawned
                else f"`{called_name(site.call)}` is called on every rank here",
            )
            for site in self.way or ()
        )

    @property
    def guard_text(self) -> str:
        return test_text(self.facts, self.audience)

    @property
    def guard(self) -> Node | None:
        """The test that keeps some ranks away."""
        return self.audience.test


def test_text(facts: Facts, audience: Audience) -> str:
    """The test that decides who comes, as it holds for those who do."""
    if audience.test is None:
        return "the guard"
    text = source(audience.test)
    comes = next((r for r, truth in zip(RANKS, audience.reached, strict=True) if truth), None)
    if comes is not None and facts.guards.truth(audience.test, comes) is False:
        return f"not ({text})"
    return text
