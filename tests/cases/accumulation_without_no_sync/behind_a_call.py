"""The window is counted here, backward and step are in another file."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from scaling import LossScaler


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    model = DistributedDataParallel(nn.Linear(32, 10).cuda(), device_ids=[local_rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scale = LossScaler()
    optimizer.zero_grad()
    for step in range(1000):  # DDP504
        with torch.autocast("cuda", dtype=torch.float16):
            loss = model(torch.randn(32, 32, device=local_rank)).square().mean()
        loss = loss / 4
        last = (step + 1) % 4 == 0
        scale(loss, optimizer, model.parameters(), update=last)
        if last:
            optimizer.zero_grad()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
