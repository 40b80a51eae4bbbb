"""Training keeps the best weights on rank 0, and all ranks test with them."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def train(model, optimizer, local_rank):
    best = float("inf")
    for step in range(1000):
        loss = model(torch.randn(32, 32, device=local_rank)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if dist.get_rank() == 0 and step % 100 == 0 and loss.item() < best:
            best = loss.item()
            torch.save(model.module.state_dict(), "best.pt")


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    model = DistributedDataParallel(nn.Linear(32, 10).cuda(), device_ids=[local_rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    train(model, optimizer, local_rank)
    tested = nn.Linear(32, 10).cuda()
    tested.load_state_dict(torch.load("best.pt", map_location="cpu"))  # DDP405
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
