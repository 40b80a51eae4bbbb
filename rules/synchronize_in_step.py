"""Page to come."""

from __future__ import annotations

from ddp_lint.model import Program
from ddp_lint.rule import Findings, rule


@rule("DDP103", level="warning", fixes="unsafe")
def check(program: Program) -> Findings:
    for wait in program.waits:
        if wait.always:
            yield wait.finding(
                f"`{wait.text}` runs on every step: the device idles while the host catches up",
                related=wait.chain,
            )
