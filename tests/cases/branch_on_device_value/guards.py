"""A guard of the update, what ends the loop, and a loop that goes on as the values say."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

model = nn.Linear(8, 8).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(torch.randn(4096, 8)), batch_size=64, num_workers=4)


def skipped():
    for (x,) in loader:
        loss = model(x.cuda()).square().mean()
        if loss == 0 or not torch.isfinite(loss):  # DDP102
            continue
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def enough(limit):
    for (x,) in loader:
        loss = model(x.cuda()).square().mean()
        if loss < limit:
            break
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if torch.isnan(loss):  # DDP102
            break


def solved(x):
    """As many rounds as it takes."""
    while (x.abs() > 1).any():  # DDP102
        x = x / 2
    return x


def iterated():
    for (x,) in loader:
        loss = model(solved(x.cuda())).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


skipped()
enough(0.1)
iterated()
