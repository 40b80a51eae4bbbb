"""Gradients that are averaged by hand under other names: in a dictionary, in a helper, flat, and
once for a window of micro-batches."""

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


def average(tensors):
    for tensor in tensors:
        dist.all_reduce(tensor, op=dist.ReduceOp.AVG)


def by_name():
    for _ in range(1000):
        loss = model.module(torch.randn(32, 32, device=local_rank)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        means = {}
        for name, parameter in model.named_parameters():
            means[name] = parameter.grad.float()
            dist.all_reduce(means[name], op=dist.ReduceOp.AVG)
            parameter.grad.copy_(means[name])
        optimizer.step()


def in_a_helper():
    for _ in range(1000):
        loss = model.module(torch.randn(32, 32, device=local_rank)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        average([parameter.grad for parameter in model.parameters()])
        optimizer.step()


def flat():
    for _ in range(1000):
        loss = model.module(torch.randn(32, 32, device=local_rank)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        every = torch.cat([parameter.grad.flatten() for parameter in model.parameters()])
        dist.all_reduce(every, op=dist.ReduceOp.AVG)
        start = 0
        for parameter in model.parameters():
            parameter.grad.copy_(every[start : start + parameter.numel()].view_as(parameter))
            start += parameter.numel()
        optimizer.step()


def once_for_a_window():
    for _ in range(1000):
        optimizer.zero_grad()
        for _ in range(4):
            inputs = torch.randn(32, 32, device=local_rank)
            loss = model.module(inputs).square().mean() / 4
            loss.backward()
        average([parameter.grad for parameter in model.parameters()])
        optimizer.step()


def averages_something_else():
    for _ in range(1000):
        loss = model.module(torch.randn(32, 32, device=local_rank)).square().mean()  # DDP503
        optimizer.zero_grad()
        loss.backward()
        average([loss.detach()])
        optimizer.step()


by_name()
in_a_helper()
flat()
once_for_a_window()
averages_something_else()
dist.destroy_process_group()
