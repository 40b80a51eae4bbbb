"""Each node spawns its processes: a rank counts all of them, a device those of one node."""

import os
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn


def build():
    return nn.Linear(4, 4).cuda(dist.get_rank())  # DDP506


def worker(local_rank, per_node):
    rank = int(os.environ["NODE_RANK"]) * per_node + local_rank
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl", rank=rank, world_size=int(os.environ["NODES"]) * per_node)
    build()
    dist.destroy_process_group()


if __name__ == "__main__":
    n = torch.cuda.device_count()
    mp.spawn(worker, args=(n,), nprocs=n)
