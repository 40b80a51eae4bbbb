"""A converter wraps a model for the names that others expect in the file, and for nothing else."""

import torch
from torch import nn


def convert(model, path):
    with torch.no_grad():
        print(model(torch.zeros(1, 32).cuda()).shape)
    model = nn.DataParallel(model)
    torch.save({"model": model.state_dict()}, path)


def train(model, path):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model = nn.DataParallel(model)  # DDP510
    for _ in range(1000):
        loss = model(torch.randn(32, 32).cuda()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.save({"model": model.state_dict()}, path)  # DDP403


convert(nn.Linear(32, 10).cuda(), "converted.pt")
train(nn.Linear(32, 10).cuda(), "trained.pt")
