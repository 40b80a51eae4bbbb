"""Whether a container is empty, and what a meter is told by one caller, the host knows."""

import torch
from torch import nn


class Meter:
    def __init__(self):
        self.top = 0.0
        self.last = 0.0

    def add(self, value):
        self.last = value
        self.top = max(value, self.top)
        if self.last > 100:
            self.top = 0.0


class Checked(Meter):
    """Of this one a caller passes a tensor."""

    def add_checked(self, value):
        self.last = value
        if self.last > 100:  # DDP102
            self.top = 0.0


model = nn.Linear(4, 1).cuda()
optimizer = torch.optim.Adam(model.parameters())
meter = Meter()
kept = Checked()
for step in range(100):
    loss = model(torch.randn(8, 4, device="cuda")).sum()
    optimizer.zero_grad()
    loss.backward()
    grads = []
    for parameter in model.parameters():
        if parameter.grad is not None:
            grads.append(parameter.grad.view(-1))
    if not grads:
        continue
    state = optimizer.state[model.weight]
    if not state:
        continue
    optimizer.step()
    meter.add(1.5)
    kept.add_checked(loss.detach())
    if torch.isnan(loss):  # DDP102
        break
