"""A rank leaves the loop around its steps on a number of its own."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
dist.init_process_group("nccl")


def by_hand(limit=None):
    model = nn.Linear(64, 8).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(10):
        for _ in range(100):
            loss = model(torch.randn(32, 64, device=local_rank)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            for parameter in model.parameters():
                dist.all_reduce(parameter.grad, op=dist.ReduceOp.AVG)
            optimizer.step()
        if limit is not None and loss > limit:
            break  # DDP502


def with_a_wrapper(limit):
    model = DistributedDataParallel(nn.Linear(64, 8).cuda(), device_ids=[local_rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(10):
        for _ in range(100):
            loss = model(torch.randn(32, 64, device=local_rank)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if loss > limit:
            return  # DDP502


def on_the_mean(limit):
    model = DistributedDataParallel(nn.Linear(64, 8).cuda(), device_ids=[local_rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(10):
        for _ in range(100):
            loss = model(torch.randn(32, 64, device=local_rank)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        mean = loss.detach()
        dist.all_reduce(mean, op=dist.ReduceOp.AVG)
        if mean > limit:
            break


def on_what_all_evaluate(limit):
    """Every rank goes through the same data with the same weights."""
    model = DistributedDataParallel(nn.Linear(64, 8).cuda(), device_ids=[local_rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    held_out = torch.ones(32, 64, device=local_rank)
    for _ in range(10):
        for _ in range(100):
            loss = model(torch.randn(32, 64, device=local_rank)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            score = model.module(held_out).square().mean()
        if score > limit:
            break


by_hand(2.0)
with_a_wrapper(2.0)
on_the_mean(2.0)
on_what_all_evaluate(2.0)
dist.destroy_process_group()
