"""A ``main`` that nothing here calls: who handles commands finds it by its name."""

import os

import fire
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")  # DDP508
    model = DistributedDataParallel(nn.Linear(32, 10).cuda(), device_ids=[local_rank])
    model(torch.ones(4, 32, device=local_rank)).sum().backward()
    dist.barrier()


if __name__ == "__main__":
    fire.Fire()
