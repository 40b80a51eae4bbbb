"""The program moves tensor after tensor to the CPU before it saves."""

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
if os.path.exists("last.pt"):
    model.module.load_state_dict(torch.load("last.pt"))
for _ in range(1000):
    loss = model(torch.randn(32, 32, device=local_rank)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
weights = model.module.state_dict()
for name, value in weights.items():
    weights[name] = value.cpu()
if dist.get_rank() == 0:
    torch.save(weights, "last.pt")
dist.destroy_process_group()
