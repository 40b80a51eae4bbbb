"""DataParallel is what is left where nothing starts several processes; else it is DDP."""

import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DataParallel, DistributedDataParallel

rank = int(os.environ.get("LOCAL_RANK", -1))


class Distributed(DistributedDataParallel):
    """Knows the methods of the model inside."""

    def loss(self, inputs):
        return self(inputs).square().mean()


def step(model, optimizer):
    loss = model(torch.randn(256, 32, device="cuda")).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def train(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(1000):
        step(model, optimizer)


def build(kind):
    return {"small": nn.Linear(32, 10), "large": nn.Linear(32, 1000)}[kind].cuda()


def one_after_the_other(kind):
    model = build(kind)
    if rank == -1 and torch.cuda.device_count() > 1:
        model = nn.DataParallel(model)
    if rank != -1:
        model = DistributedDataParallel(model, device_ids=[rank])
    train(model)


def subclass(kind):
    model = build(kind)
    if rank != -1:
        model = Distributed(model, device_ids=[rank])
    else:
        model = DataParallel(model)
    train(model)


def in_distributed(net):
    return DistributedDataParallel(net, device_ids=[rank])


def in_threads(net):
    return nn.DataParallel(net)


def factories(kind):
    model = build(kind)
    model = in_distributed(model) if rank != -1 else in_threads(model)
    train(model)


class Wrapping:
    """One method for all models of a trainer."""

    def __init__(self, options):
        self.options = options
        self.net = self.onto_devices(build(options["kind"]))
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def onto_devices(self, net):
        if self.options["dist"]:
            net = DistributedDataParallel(net, device_ids=[torch.cuda.current_device()])
        elif self.options["gpus"] > 1:
            net = DataParallel(net)
        return net

    def train(self):
        for _ in range(1000):
            step(self.net, self.optimizer)


def another(kind):
    """DDP is around other models of the program, not around this one."""
    train(nn.DataParallel(nn.Linear(32, 7).cuda()))  # DDP510


def main():
    if rank != -1:
        torch.cuda.set_device(rank)
        dist.init_process_group("nccl")
    kind = sys.argv[1]
    one_after_the_other(kind)
    subclass(kind)
    factories(kind)
    Wrapping({"dist": rank != -1, "gpus": torch.cuda.device_count(), "kind": kind}).train()
    another(kind)
    if rank != -1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
