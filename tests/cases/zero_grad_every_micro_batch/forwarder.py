"""A class that only hands zero_grad() on does what it is told: the mistake is the loop's."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Optimizer:
    def __init__(self, inner):
        self.inner = inner

    def zero_grad(self):
        self.inner.zero_grad()

    def step(self):
        self.inner.step()


def clear(optimizer):
    optimizer.zero_grad()  # DDP205


device = torch.device("cuda")
data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4)
model = nn.Linear(32, 10).to(device)


def directly():
    optimizer = Optimizer(torch.optim.SGD(model.parameters(), lr=0.1))
    for step, (images, labels) in enumerate(loader, start=1):
        optimizer.zero_grad()  # DDP205
        loss = nn.functional.cross_entropy(model(images.to(device)), labels.to(device)) / 4
        loss.backward()
        if step % 4 == 0:
            optimizer.step()


def in_a_helper():
    optimizer = Optimizer(torch.optim.SGD(model.parameters(), lr=0.1))
    for step, (images, labels) in enumerate(loader, start=1):
        clear(optimizer)
        loss = nn.functional.cross_entropy(model(images.to(device)), labels.to(device)) / 4
        loss.backward()
        if step % 4 == 0:
            optimizer.step()


directly()
in_a_helper()
