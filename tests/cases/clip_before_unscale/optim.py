import contextlib

import torch


class FullPrecision:
    def __init__(self, model, optimizer, limit=1.0):
        self.model = model
        self.optimizer = optimizer
        self.limit = limit

    def context(self):
        return contextlib.nullcontext()

    def backward(self, loss):
        self.optimizer.zero_grad()
        loss.backward()

    def clip(self):
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.limit)

    def step(self):
        self.clip()
        self.optimizer.step()


class Half:
    """Scaled all the way to the clip."""

    def __init__(self, model, optimizer, limit=1.0):
        self.model = model
        self.optimizer = optimizer
        self.limit = limit
        self.scaler = torch.amp.GradScaler("cuda")

    def context(self):
        return torch.amp.autocast("cuda")

    def backward(self, loss):
        self.optimizer.zero_grad()
        self.scaler.scale(loss).backward()

    def clip(self):
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.limit)  # DDP201

    def step(self):
        self.clip()
        self.scaler.step(self.optimizer)
        self.scaler.update()


class HalfDoneWell(Half):
    def clip(self):
        self.scaler.unscale_(self.optimizer)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.limit)
