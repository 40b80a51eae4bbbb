"""With what Accelerate may shard, where the program or Accelerate itself refuses one."""

from __future__ import annotations

import pytest

from tests import markers

PROGRAM = """
import torch
from accelerate import Accelerator, DistributedType
from torch import nn

class Fit:
    def __init__(self, net):
        self.acc = Accelerator()
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        self.net, self.optimizer = self.acc.prepare(net, self.optimizer)
        {check}

    def save(self, path):
        torch.save(self.acc.get_state_dict(self.net), path)

    def run(self):
        for step in range(1000):
            loss = self.net(torch.randn(32, 32, device=self.acc.device)).square().mean()
            self.optimizer.zero_grad()
            self.acc.backward(loss)
            self.optimizer.step()
            if self.acc.is_main_process and step % 100 == 0:
                self.save("last.pt")

other = Accelerator()
Fit(nn.Linear(32, 10)).run()
"""


def said(check: str) -> list[str]:
    project = markers.project_of_text(PROGRAM.format(check=check))
    return [f.message for f in markers.findings(project) if f.code == "DDP407"]


@pytest.mark.parametrize(
    ("check", "plugins"),
    [
        ("pass", "FSDP and DeepSpeed"),
        ("assert self.acc.distributed_type != DistributedType.FSDP, 'complex'", "DeepSpeed"),
        ("assert self.acc.distributed_type not in (DistributedType.DEEPSPEED,)", "FSDP"),
        ("if self.acc.distributed_type == DistributedType.FSDP: raise ValueError", "DeepSpeed"),
        ("if self.acc.distributed_type == 'DEEPSPEED': raise ValueError", "FSDP"),
        ("assert self.acc.state.deepspeed_plugin is None", "FSDP"),
        ("if self.acc.state.fsdp_plugin: raise ValueError", "DeepSpeed"),
        ("self.twin, self.net = self.acc.prepare(nn.Linear(1, 1), nn.Linear(1, 1))", "FSDP"),
        ("assert other.distributed_type != DistributedType.FSDP", "FSDP and DeepSpeed"),
        ("if self.acc.distributed_type != DistributedType.FSDP: raise ValueError", "FSDP"),
        ("if net and self.acc.distributed_type == 'FSDP': raise ValueError", "FSDP and DeepSpeed"),
        ("if net: assert self.acc.distributed_type != 'FSDP'", "FSDP and DeepSpeed"),
        ("assert self.acc.distributed_type == net", "FSDP and DeepSpeed"),
    ],
)
def test_the_text_names_what_is_left(check: str, plugins: str) -> None:
    (message,) = said(check)
    assert f": under {plugins} they wait" in message


@pytest.mark.parametrize(
    "check",
    [
        "assert self.acc.distributed_type in (DistributedType.NO, DistributedType.MULTI_GPU)",
        "if self.acc.distributed_type in ('FSDP', 'DEEPSPEED'): raise ValueError",
    ],
)
def test_nothing_is_said_where_nothing_is_left(check: str) -> None:
    assert not said(check)
