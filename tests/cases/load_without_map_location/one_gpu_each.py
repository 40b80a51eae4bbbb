"""Each process sees one GPU only: its GPU 0 is nobody else's."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

os.environ["CUDA_VISIBLE_DEVICES"] = os.environ["LOCAL_RANK"]
dist.init_process_group("nccl")
model = nn.Linear(32, 10).cuda()
model.load_state_dict(torch.load("last.pt"))
model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(1000):
    loss = model(torch.randn(32, 32, device="cuda")).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
dist.destroy_process_group()
