"""Page to come."""

from __future__ import annotations

from ddp_lint.model import Program
from ddp_lint.rule import Findings, rule


@rule("DDP101", level="warning", fixes="unsafe")
def check(program: Program) -> Findings:
    for read in program.host_reads:
        if read.on_every_step:
            yield read.finding(
                f"`{read.value_text}` is read back by {read.how} on every step: the host waits for "
                "the device each time; keep the tensor and read it every N steps",
                related=read.chain,
            )
