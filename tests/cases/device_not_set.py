"""No device is chosen for the process; only DDP is told one."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def setup():
    dist.init_process_group(backend="nccl")  # DDP507


def main():
    setup()
    local_rank = int(os.environ["LOCAL_RANK"])
    model = DistributedDataParallel(nn.Linear(32, 10).to(local_rank), device_ids=[local_rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(1000):
        loss = model(torch.randn(32, 32, device=local_rank)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
