"""The device is set rightly, and DDP is told another one."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Settings:
    device_ids = None


def main():
    settings = Settings()
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    settings.device_ids = [dist.get_rank()]
    model = nn.Linear(32, 10).cuda()
    model = DistributedDataParallel(model, device_ids=settings.device_ids)  # DDP506
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(1000):
        loss = model(torch.randn(32, 32, device=local_rank)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
