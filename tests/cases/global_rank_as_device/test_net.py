"""Tests a network, and is no test: people start it, on as many nodes as they have."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def test(model, device):
    with torch.no_grad():
        return model(torch.rand(2, 4, device=device))


def main():
    rank = int(os.environ["RANK"])
    torch.cuda.set_device(rank)  # DDP506
    dist.init_process_group("nccl")
    device = torch.device(f"cuda:{rank}")
    test(DistributedDataParallel(nn.Linear(4, 1).to(device)), device)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
