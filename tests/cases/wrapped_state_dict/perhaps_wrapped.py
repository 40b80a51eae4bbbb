"""Wrapped on several GPUs and plain on one: both are this program, and one has the prefix."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main():
    distributed = int(os.environ.get("WORLD_SIZE", "1")) > 1
    local_rank = int(os.environ.get("LOCAL_RANK", "0"))
    torch.cuda.set_device(local_rank)
    if distributed:
        dist.init_process_group("nccl")
    model = nn.Linear(32, 10).cuda()
    model = DistributedDataParallel(model, device_ids=[local_rank]) if distributed else model
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(1000):
        loss = model(torch.randn(32, 32, device=local_rank)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if not distributed or dist.get_rank() == 0:
        torch.save(model.state_dict(), "last.pt")  # DDP403
        raw = model.module if distributed else model
        torch.save(raw.state_dict(), "raw.pt")
    if distributed:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
