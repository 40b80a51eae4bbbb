"""The device is chosen after the group is made; nothing is sent between."""

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def setup(rank, world_size):
    dist.init_process_group("nccl", rank=rank, world_size=world_size)  # DDP507
    torch.cuda.set_device(rank)


def run(rank, world_size):
    setup(rank, world_size)
    model = DistributedDataParallel(nn.Linear(32, 10).cuda(), device_ids=[rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(1000):
        loss = model(torch.randn(32, 32, device=rank)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(run, args=(torch.cuda.device_count(),), nprocs=torch.cuda.device_count())
