"""A second wrapper is made after training, only to be able to load the file."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    model = DistributedDataParallel(nn.Linear(32, 10).cuda(), device_ids=[local_rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(1000):
        loss = model(torch.randn(32, 32, device=local_rank)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if dist.get_rank() == 0:
        torch.save(model.state_dict(), "last.pt")  # DDP403
    dist.barrier()
    tested = DistributedDataParallel(nn.Linear(32, 10).cuda(), device_ids=[local_rank])
    tested.load_state_dict(torch.load("last.pt", map_location=f"cuda:{local_rank}"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
