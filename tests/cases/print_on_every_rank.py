"""Prints of a loop on every rank, and prints that are guarded, marked or made once."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def print_once(text):
    if dist.get_rank() == 0:
        print(text)


def log(text):
    print(text)


def summary(step, value):
    """Called under a guard."""
    print(f"step {step}: {value:.3f}")


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    model = DistributedDataParallel(nn.Linear(32, 10).cuda(), device_ids=[local_rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    rank = dist.get_rank()
    print("starting")
    for step in range(1000):
        loss = model(torch.randn(32, 32, device=local_rank)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print("step", step, loss.item())  # DDP509
            print_once(f"step {step}")
            print(f"rank {rank}: step {step}")
            print("step", step, flush=True, file=open(f"log_{rank}.txt", "a"))
            log(f"[{rank}] step {step}")
        if step % 100 == 0 and rank == 0:
            print("step", step, loss.item())
            summary(step, loss.item())
    print("finished")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
