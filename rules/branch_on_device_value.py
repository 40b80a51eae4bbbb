"""Page to come."""

from __future__ import annotations

from ddp_lint.model import Program
from ddp_lint.rule import Findings, rule


@rule("DDP102", level="warning")
def check(program: Program) -> Findings:
    for branch in program.branches:
        if branch.on_every_step:
            yield branch.finding(
                f"`{branch.test_text}` is decided in Python on every step: the host waits for the "
                "device each time; decide on the device, or check every N steps",
                related=branch.chain,
            )
