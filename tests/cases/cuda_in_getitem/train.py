"""The workers are named here."""

import torch
from torch import nn
from torch.utils.data import DataLoader

from points import Points


def main():
    model = nn.Linear(32, 8).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for points in DataLoader(Points(), batch_size=64, shuffle=True, num_workers=4):
        loss = model(points).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
