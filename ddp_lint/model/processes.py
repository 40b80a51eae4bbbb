"""Layer 10, processes: who comes to a place in a program of several processes."""

from __future__ import annotations

from dataclasses import dataclass

from ddp_lint.finding import Related
from ddp_lint.model.calls import Site
from ddp_lint.model.facts import Facts, Spot, called_name
from ddp_lint.model.guards import PER_NODE, RANKS, Audience
from ddp_lint.model.modules import Unit
from ddp_lint.model.torch_api import INIT_GROUP
from ddp_lint.model.tree import Node, source


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


def has_one_node(facts: Facts) -> bool:
    """Whether the group is told as many processes as a node has: no second node can join."""
    calls = [call for call, _ in facts.calls_to(INIT_GROUP)]
    given = [
        node
        for call in calls
        for node in [k.value for k in call.keywords if k.arg == "world_size"] or call.args[3:4]
    ]
    return (
        bool(given)
        and len(given) == len(calls)
        and all(facts.guards.value(node, rank) == PER_NODE for node in given for rank in RANKS)
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
                site.call, f"`{called_name(site.call)}` is called on every rank here"
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
