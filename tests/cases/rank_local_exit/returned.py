"""A step in a function of its own gives back its loss, as this rank has it or as all have it."""

import math
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


def step():
    inputs = torch.randn(32, 32, device=local_rank)
    loss = model(inputs).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item(), inputs.size(0)  # DDP101


def step_of_all():
    loss = model(torch.randn(32, 32, device=local_rank)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    mean = loss.detach()
    dist.all_reduce(mean, op=dist.ReduceOp.AVG)
    return mean.item(), loss.item()  # DDP101


def alone():
    for _ in range(1000):
        loss, count = step()
        assert count == 32
        assert not math.isnan(loss)  # DDP502


def together():
    for _ in range(1000):
        mean, _ = step_of_all()
        assert not math.isnan(mean)


alone()
together()
dist.destroy_process_group()
