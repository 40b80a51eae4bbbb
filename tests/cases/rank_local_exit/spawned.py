"""`mp.spawn` ends all ranks when one of them fails; one that ends well or skips is no failure."""

import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def steps(model, optimizer, strict):
    for _ in range(1000):
        loss = model(torch.randn(32, 32, device="cuda")).square().mean()
        if strict and torch.isnan(loss):  # DDP102
            raise FloatingPointError("the loss is not a number")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def steps_or_fails(model, optimizer):
    for _ in range(1000):
        loss = model(torch.randn(32, 32, device="cuda")).square().mean()
        if torch.isnan(loss):  # DDP102
            sys.exit("the loss is not a number")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def steps_or_ends(model, optimizer):
    for _ in range(1000):
        loss = model(torch.randn(32, 32, device="cuda")).square().mean()
        if torch.isnan(loss):  # DDP102
            sys.exit()  # DDP502
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def steps_or_skips(model, optimizer):
    for _ in range(1000):
        loss = model(torch.randn(32, 32, device="cuda")).square().mean()
        if torch.isnan(loss):  # DDP102
            continue  # DDP502
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def work(rank, world_size):
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", "tcp://localhost:29500", rank=rank, world_size=world_size)
    model = DistributedDataParallel(nn.Linear(32, 32).cuda(), device_ids=[rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    steps(model, optimizer, strict=True)
    steps_or_fails(model, optimizer)
    steps_or_ends(model, optimizer)
    steps_or_skips(model, optimizer)
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(work, args=(2,), nprocs=2)
