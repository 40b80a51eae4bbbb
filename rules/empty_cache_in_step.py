"""Page to come."""

from __future__ import annotations

from ddp_lint.model import Program
from ddp_lint.rule import Findings, rule


@rule("DDP104", level="warning", fixes="safe")
def check(program: Program) -> Findings:
    for clear in program.cache_clears:
        if clear.always:
            yield clear.finding(
                f"`{clear.text}` runs on every step: it waits for the device and makes the "
                "allocator ask the driver for the same memory again",
                related=clear.chain,
            )
