"""The loops."""

import torch
from torch.nn.functional import cross_entropy


class Runner:
    def __init__(self, model, optimizer, loader, rank, device, hooks=()):
        self.model = model
        self.optimizer = optimizer
        self.loader = loader
        self.rank = rank
        self.device = device
        self.hooks = list(hooks)
        self.epoch = 0
        self.steps = 0

    def run(self, epochs):
        for self.epoch in range(epochs):  # DDP301
            for hook in self.hooks:
                hook.before_epoch(self)
            for batch in self.loader:
                self.step(batch)
            for hook in self.hooks:
                hook.after_epoch(self)
            if self.rank == 0:
                torch.save(self.raw_model().state_dict(), f"epoch{self.epoch}.pt")

    def step(self, batch):
        graphs, classes = (tensor.to(self.device) for tensor in batch)
        loss = cross_entropy(self.model(graphs), classes)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.steps += 1

    def raw_model(self):
        return getattr(self.model, "module", self.model)
