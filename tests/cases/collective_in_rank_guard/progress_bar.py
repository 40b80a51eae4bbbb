"""A bar that is disabled on the other ranks never counts, and the loop asks the bar."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from tqdm import tqdm


def fill(model, optimizer, local_rank, total):
    bar = tqdm(total=total, disable=dist.get_rank() != 0)
    while bar.n < total:  # DDP501
        loss = model(torch.randn(32, 32, device=local_rank)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        bar.update(1)


def show(model, optimizer, local_rank, total):
    for _ in tqdm(range(total), disable=dist.get_rank() != 0):
        loss = model(torch.randn(32, 32, device=local_rank)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def wrap_on_one(model, optimizer, local_rank, total):
    steps = range(total)
    if dist.get_rank() == 0:
        steps = tqdm(steps)
    for _ in steps:
        loss = model(torch.randn(32, 32, device=local_rank)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    model = DistributedDataParallel(nn.Linear(32, 10).cuda(), device_ids=[local_rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    fill(model, optimizer, local_rank, 100)
    show(model, optimizer, local_rank, 100)
    wrap_on_one(model, optimizer, local_rank, 100)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
