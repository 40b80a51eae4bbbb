"""The rank that leaves misses backward passes of a plain model and of a wrapped one."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
dist.init_process_group("nccl")
teacher = nn.Linear(32, 10).cuda()
model = DistributedDataParallel(nn.Linear(32, 10).cuda(), device_ids=[local_rank])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
of_teacher = torch.optim.SGD(teacher.parameters(), lr=0.1)


def helper(inputs):
    own = teacher(inputs).square().mean()
    if torch.isnan(own):  # DDP102
        return
    of_teacher.zero_grad()
    own.backward()
    of_teacher.step()


def before_both():
    for _ in range(1000):
        inputs = torch.randn(32, 32, device=local_rank)
        own = teacher(inputs).square().mean()
        if torch.isnan(own):  # DDP102
            break  # DDP502
        of_teacher.zero_grad()
        own.backward()
        of_teacher.step()
        loss = model(inputs).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def beside_it():
    for _ in range(1000):
        inputs = torch.randn(32, 32, device=local_rank)
        helper(inputs)
        loss = model(inputs).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


before_both()
beside_it()
dist.destroy_process_group()
