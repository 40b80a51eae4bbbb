"""fairscale flattens the parameters into a new one, or shards them where they are."""

import os

import torch
import torch.distributed as dist
from fairscale.nn import FullyShardedDataParallel
from torch import nn

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")


def train(model, optimizer):
    for _ in range(1000):
        loss = model(torch.randn(32, 64, device="cuda")).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def in_place():
    model = nn.Linear(64, 8).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    train(FullyShardedDataParallel(model, flatten_parameters=False), optimizer)


def flat():
    model = nn.Linear(64, 8).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)  # DDP513
    train(FullyShardedDataParallel(model, flatten_parameters=True), optimizer)


in_place()
flat()
dist.destroy_process_group()
