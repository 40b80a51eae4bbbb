"""The group is made of two of the processes, and those two destroy it."""

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def run(rank, world_size):
    if rank <= 1:
        torch.cuda.set_device(rank)
        dist.init_process_group("nccl", "tcp://localhost:29500", rank=rank, world_size=2)
        model = DistributedDataParallel(nn.Linear(32, 10).cuda(), device_ids=[rank])
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(1000):
            loss = model(torch.randn(32, 32, device=rank)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(run, args=(4,), nprocs=4)
