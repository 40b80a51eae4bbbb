"""What is said of a rank that leaves a step alone: how bad it is, and where the others wait."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest

from ddp_lint.finding import Finding
from tests import markers

START = """
import math
import os
import sys
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.nn.parallel import DistributedDataParallel

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
net = nn.Linear(8, 3).cuda()
"""


def finding(wrapper: str, before: str, exit: str) -> Finding:
    """That of a loop which may leave by ``exit``: after the backward pass, or before."""
    leave = f"if not math.isfinite(loss.item()):\n    {exit}\n"
    step = f"""
loss = model(torch.randn(4, 8, device="cuda")).square().mean()
{leave if before == "backward" else ""}
optimizer.zero_grad()
loss.backward()
{leave if before == "next step" else ""}
optimizer.step()
"""
    text = (
        f"{START}\nmodel = {wrapper}(net)\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        f"for _ in range(1000):{indent(dedent(step), '    ')}\ndist.destroy_process_group()\n"
    )
    project = markers.project_of_text(text)
    (found,) = (one for one in markers.findings(project) if one.code == "DDP502")
    return found


@pytest.mark.parametrize(
    ("exit", "level"),
    [
        ("continue", "error"),
        ("break", "error"),
        ("sys.exit()", "error"),
        ("sys.exit(0)", "error"),
        ("raise SystemExit", "error"),
        ("sys.exit(1)", "warning"),
        ("raise SystemExit(1)", "warning"),
        ("raise ValueError(loss)", "warning"),
        ("os.abort()", "warning"),
    ],
)
def test_failures_are_seen_by_launchers(exit: str, level: str) -> None:
    found = finding("DistributedDataParallel", "backward", exit)
    assert found.level == level
    assert ("until the launcher ends them" in found.message) == (level == "warning")


@pytest.mark.parametrize(
    ("wrapper", "before", "place"),
    [
        ("DistributedDataParallel", "next step", "loss.backward()"),
        ("FullyShardedDataParallel", "next step", "model(torch.randn"),
        ("FullyShardedDataParallel", "backward", "loss.backward()"),
    ],
)
def test_where_the_others_wait(wrapper: str, before: str, place: str) -> None:
    message = finding(wrapper, before, "break").message
    assert f"the others go on to `{place}" in message
    assert "at the latest" not in message
