"""One rank also trains a plain copy, to compare with: that asks nobody."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
dist.init_process_group("nccl")
plain = nn.Linear(32, 10).cuda()
model = DistributedDataParallel(nn.Linear(32, 10).cuda(), device_ids=[local_rank])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(1000):
    inputs = torch.randn(32, 32, device=local_rank)
    loss = model(inputs).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if dist.get_rank() == 0:
        reference = plain(inputs).square().mean()
        plain.zero_grad()
        reference.backward()
dist.destroy_process_group()
