"""Prints in the loop that come once, at steps named one by one, or again with each epoch."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Trainer:
    def __init__(self, model, freeze, marks):
        self.model = model
        self.freeze = freeze
        self.marks = marks
        self.frozen = False
        self.told = False
        self.seen = 0
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(self, inputs, current):
        if not self.frozen and current < self.freeze:
            print("the backbone is frozen")
            self.frozen = True
        elif current == self.freeze:
            print("everything is trained")
        if current in self.marks:
            print("a mark")
            self.grow()
        if current > self.freeze:
            print("after the freeze")  # DDP509
        self.seen += 1
        if self.seen == 3:
            print("the third of the epoch")  # DDP509
        loss = self.model(inputs).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.tell()

    def grow(self):
        print("the model grows")

    def tell(self):
        if self.told:
            return
        print("the first step is done")
        self.told = True


def main(options):
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    model = DistributedDataParallel(nn.Linear(32, 10).cuda(), device_ids=[local_rank])
    trainer = Trainer(model, options.freeze, options.marks)
    current = 0
    for epoch in range(10):
        trainer.seen = 0
        fresh = True
        for index in range(1000):
            current += 1
            trainer.step(torch.randn(32, 32, device=local_rank), current)
            if fresh:
                print("the epoch begins")  # DDP509
                fresh = False
            if index == 0:
                print("the epoch has begun")  # DDP509
        if epoch == 0:
            print("the first epoch is done")
        if epoch == 5:
            for layer in range(3):
                print("layer", layer)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(None)
