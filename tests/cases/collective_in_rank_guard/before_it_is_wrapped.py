"""The first rank runs the plain model backward, for comparison, before and after it is wrapped."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

rank = int(os.environ["RANK"])
local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
dist.init_process_group("nccl")
model = nn.Linear(32, 10).cuda()
twin = nn.Linear(32, 10).cuda()
if rank == 0:
    loss = model(torch.randn(32, 32, device=local_rank)).square().mean()
    loss.backward()
model = DistributedDataParallel(model, device_ids=[local_rank])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(1000):
    outputs = model(torch.randn(32, 32, device=local_rank))
    loss = outputs.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
if rank == 0:
    loss = twin(torch.randn(32, 32, device=local_rank)).square().mean()
    loss.backward()
for step in range(10):
    if step > 0 and rank == 0:
        total.backward()  # DDP501
    losses = []
    losses.append(model(torch.randn(32, 32, device=local_rank)).square().mean())
    total = sum(losses)
dist.destroy_process_group()
