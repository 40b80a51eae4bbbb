"""Parameters that a forward leaves out: what was used is remembered over the window."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
dist.init_process_group("nccl")
model = nn.Linear(32, 10).cuda()
model = DistributedDataParallel(model, find_unused_parameters=True)  # DDP511
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(1000):  # DDP504
    loss = model(torch.randn(32, 32, device=local_rank)).square().mean() / 4
    loss.backward()
    if (step + 1) % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
dist.destroy_process_group()
