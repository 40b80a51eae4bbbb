"""A worker of a test asserts: that fails the test, and whoever started the ranks ends them."""

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def worker(rank, world_size):
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", "tcp://localhost:29500", rank=rank, world_size=world_size)
    model = DistributedDataParallel(nn.Linear(8, 8).cuda(), device_ids=[rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        loss = model(torch.ones(4, 8, device=rank)).sum()
        assert not torch.isnan(loss)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.destroy_process_group()


def test_two_ranks():
    mp.spawn(worker, (2,), nprocs=2)


def skipping_worker(rank, world_size):
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", "tcp://localhost:29500", rank=rank, world_size=world_size)
    model = DistributedDataParallel(nn.Linear(8, 8).cuda(), device_ids=[rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        loss = model(torch.ones(4, 8, device=rank)).sum()
        if torch.isnan(loss):
            continue  # DDP502
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.destroy_process_group()


def test_that_skips():
    mp.spawn(skipping_worker, (2,), nprocs=2)
