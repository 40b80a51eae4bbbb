"""All processes are spawned here, and each is given its rank: there is no other node."""

import os
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn


def build():
    return nn.Linear(4, 4).cuda(dist.get_rank())


def worker(rank, world_size):
    os.environ["MASTER_ADDR"] = "localhost"
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=world_size)
    build()
    dist.destroy_process_group()


if __name__ == "__main__":
    n = torch.cuda.device_count()
    mp.spawn(worker, args=(n,), nprocs=n)
