"""Resumed through a helper in another file."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from restoring import restore


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    model = DistributedDataParallel(nn.Linear(32, 10).cuda(), device_ids=[local_rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    restore("last.pt", state_dict=model, optimizer=optimizer)
    for _ in range(1000):
        loss = model(torch.randn(32, 32, device=local_rank)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if dist.get_rank() == 0:
        state = {"state_dict": model.state_dict(), "optimizer": optimizer.state_dict()}
        torch.save(state, "last.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
