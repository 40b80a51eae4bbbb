"""A helper that gives what it is given: a tensor to one caller, and a number to the next."""

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def default(value, other):
    if value is not None:
        return value
    return other() if callable(other) else other


class Diffusion(nn.Module):
    def __init__(self, width=None):
        super().__init__()
        self.width = default(width, lambda: 32)
        self.layer = nn.Linear(32, 32)

    def forward(self, images, noise=None, number=None):
        noise = default(noise, lambda: torch.randn_like(images))
        number = default(number, 1)
        assert number < 8, "one of eight"
        assert images.shape[-1] == self.width, f"{images} is not {self.width} wide"
        if noise.max() > 3:  # DDP102
            number = 2
        scale = 2 if number > 1 else 1
        return self.layer(images + noise).square().mean() * scale


class Trainer:
    def __init__(self, net, optimizer):
        self.net = net
        self.optimizer = optimizer

    def checked(self, number=None):
        if number != 0:
            number = default(number, 1)
        return number

    def fit(self, loader, number=None):
        for (images,) in loader:
            number = self.checked(number)
            loss = self.net(images.cuda(), number=number)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()


def joined(pooled, extra):
    return torch.cat([pooled, extra], dim=1), pooled


def prepared(accelerator, net, encoder, optimizer, cached):
    loader = DataLoader(TensorDataset(torch.randn(4096, 32)), batch_size=64, num_workers=4)
    if cached:
        net, optimizer, loader = accelerator.prepare(net, optimizer, loader)
    else:
        net, encoder, optimizer, loader = accelerator.prepare(net, encoder, optimizer, loader)
    for batch in loader:
        pooled = None
        if cached:
            pooled = batch["pooled"]
        if pooled is None:
            pooled = encoder(batch["words"])
        both, pooled = joined(pooled, batch["extra"])
        if torch.isnan(pooled).any():  # DDP102
            pooled = torch.nan_to_num(pooled)
        loss = net(both).square().mean() + pooled.square().mean()
        optimizer.zero_grad()
        accelerator.backward(loss)
        optimizer.step()


def main():
    net = Diffusion().cuda()
    loader = DataLoader(TensorDataset(torch.randn(4096, 32)), batch_size=64, num_workers=4)
    Trainer(net, torch.optim.SGD(net.parameters(), lr=0.1)).fit(loader)
    prepared(Accelerator(), nn.Linear(64, 8), nn.Linear(32, 32), build(net), cached=False)


def build(net):
    return torch.optim.SGD(net.parameters(), lr=0.1)
