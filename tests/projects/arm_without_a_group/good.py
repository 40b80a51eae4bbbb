"""The setting that leaves the group out leaves one process, which may save as it likes."""

import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

parser = argparse.ArgumentParser()
parser.add_argument("--alone", action="store_true")
args = parser.parse_args()
local_rank = int(os.environ.get("LOCAL_RANK", 0))
torch.cuda.set_device(local_rank)
model = nn.Linear(8, 8).cuda()
if not args.alone:
    dist.init_process_group("nccl")
    model = DistributedDataParallel(model, device_ids=[local_rank])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(100):
    loss = model(torch.randn(4, 8, device=local_rank)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
if not args.alone:
    if dist.get_rank() == 0:
        torch.save(model.module.state_dict(), "last.pt")
    dist.destroy_process_group()
else:
    torch.save(model.state_dict(), "last.pt")
