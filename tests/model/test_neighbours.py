"""Files beside a program that are only looked at must not stop it, whatever they are."""

from __future__ import annotations

from pathlib import Path

from ddp_lint.engine import analyse
from ddp_lint.registry import all_rules
from ddp_lint.sources import Project, SourceFile

TRAINING = """
import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

parser = argparse.ArgumentParser()
parser.add_argument("--resume")
args = parser.parse_args()
local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
dist.init_process_group("nccl")
model = nn.Linear(32, 10).cuda()
weights = torch.load(args.resume, map_location="cpu")["model"]
model.load_state_dict(weights, strict=False)
model = DistributedDataParallel(model, device_ids=[local_rank])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(1000):
    loss = model(torch.randn(32, 32, device=local_rank)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        print(step)
dist.destroy_process_group()
"""


def test_a_dangling_link_beside_a_program(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAINING, encoding="utf-8")
    (tmp_path / "gone.py").symlink_to(tmp_path / "nowhere.py")
    files = {name: SourceFile(tmp_path / name, name) for name in ("gone.py", "train.py")}
    outcome = analyse(Project(tmp_path, files, frozenset(files)), all_rules().values())
    assert [finding.code for finding in outcome.findings] == ["DDP509"]
    assert [problem.path for problem in outcome.problems] == ["gone.py"]
