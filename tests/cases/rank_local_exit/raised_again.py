"""What a handler raises again leaves the step as if nobody had caught it."""

import math
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Trainer:
    def __init__(self, model, optimizer):
        self.model = model
        self.optimizer = optimizer

    def step(self, inputs, strict=True):
        loss = self.model(inputs).square().mean()
        if not math.isfinite(loss.item()):  # DDP101
            message = "the loss is not finite"
            if strict:
                raise FloatingPointError(message)  # DDP502
            else:
                return
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def train(self):
        for _ in range(1000):
            try:
                self.step(torch.randn(32, 32, device="cuda"))
            except FloatingPointError as error:
                print(error)
                raise

    def train_on(self):
        for _ in range(1000):
            try:
                loss = self.model(torch.randn(32, 32, device="cuda")).square().mean()
                if not math.isfinite(loss.item()):  # DDP101
                    raise FloatingPointError("the loss is not finite")
            except FloatingPointError:
                loss = 0 * loss.nan_to_num()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()


local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
dist.init_process_group("nccl")
model = DistributedDataParallel(nn.Linear(32, 10).cuda(), device_ids=[local_rank])
trainer = Trainer(model, torch.optim.SGD(model.parameters(), lr=0.1))
trainer.train()
trainer.train_on()
dist.destroy_process_group()
