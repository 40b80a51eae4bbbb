"""The whole step runs on one rank: its backward waits for the gradients of the others."""

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
if dist.get_rank() == 0:
    loss = model(torch.randn(32, 32, device=local_rank)).square().mean()
    loss.backward()  # DDP501
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
