"""The inner model is taken out long before it is saved, in the branch that wraps."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def train(generator, optimizer, distributed, local_rank):
    module = generator.module if distributed else generator
    for step in range(1000):
        loss = generator(torch.randn(32, 32, device=local_rank)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if dist.get_rank() == 0 and step % 100 == 0:
            torch.save({"g": module.state_dict()}, f"{step:06d}.pt")


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    model = DistributedDataParallel(nn.Linear(32, 10).cuda(), device_ids=[local_rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    train(model, optimizer, True, local_rank)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
