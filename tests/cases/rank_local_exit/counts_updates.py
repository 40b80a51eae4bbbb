"""What an optimizer has counted is equal on all ranks, also where the loss is divided by it."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
dist.init_process_group("nccl")
model = DistributedDataParallel(nn.Linear(32, 10).cuda(), device_ids=[local_rank])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
count = 0
for _ in range(1000):
    if count >= 900:
        break
    loss = model(torch.randn(32, 32, device=local_rank)).square().mean() / (count + 1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    groups = optimizer.param_groups
    count = groups[0]["step"] if "step" in groups[0] else 0
dist.destroy_process_group()
