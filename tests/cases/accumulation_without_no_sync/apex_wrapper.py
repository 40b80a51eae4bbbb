"""apex has no no_sync(): its wrapper is told with disable_allreduce() and enable_allreduce()."""

import os

import torch
import torch.distributed as dist
from apex.parallel import DistributedDataParallel
from torch import nn

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
model = DistributedDataParallel(nn.Linear(8, 8).cuda())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
window = 4


def switched():
    for step in range(1000):
        model.disable_allreduce()
        if (step + 1) % window == 0:
            model.enable_allreduce()
        loss = model(torch.randn(4, 8, device="cuda")).square().mean() / window
        loss.backward()
        if (step + 1) % window == 0:
            optimizer.step()
            optimizer.zero_grad()


def every_time():
    for step in range(1000):  # DDP504
        loss = model(torch.randn(4, 8, device="cuda")).square().mean() / window
        loss.backward()
        if (step + 1) % window == 0:
            optimizer.step()
            optimizer.zero_grad()


switched()
every_time()
dist.destroy_process_group()
