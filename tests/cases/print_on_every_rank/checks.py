"""What a check says each rank got is there to find the rank that differs."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
dist.init_process_group("nccl")
model = DistributedDataParallel(nn.Linear(8, 1).cuda(), device_ids=[local_rank])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
passed = True
last = False


def same(one, other):
    print("gradients", one, other)
    return torch.allclose(one, other)


def positive(total):
    print("sum", total)
    assert total == 32.0


def told(got, want):
    if got != want:
        print(f"{got} is not {want}")
    return got


def shape_of(x, y):
    assert x.shape == y.shape
    print("shape", x.shape)  # DDP509


for step in range(1000):
    x = torch.ones(4, 8).cuda()
    model.zero_grad()
    y = model(x)
    y.sum().backward()
    optimizer.step()
    last = step == 999

    def check(name, parameter, expected):
        actual = parameter.grad.sum().item()
        print(name + ": expected {}, got {}".format(expected, actual))
        return expected == actual

    if step % 100 == 0:
        print("step =", step, "of", 999)  # DDP509
        shape_of(x, y)
        if not check("weight", model.module.weight, 32.0):
            passed = False
        positive(model.module.weight.grad.sum().item())
        told(step % 3, len(x))
        if not same(model.module.weight.grad, model.module.bias.grad):
            passed = False
dist.destroy_process_group()
