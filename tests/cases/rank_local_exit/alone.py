"""A program of one process may leave whenever it likes."""

import torch
from torch import nn


def main():
    model = nn.Linear(32, 10).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(1000):
        loss = model(torch.randn(32, 32, device="cuda")).square().mean()
        if torch.isnan(loss):  # DDP102
            break
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
