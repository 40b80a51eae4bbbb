"""A prepared model is a DDP model too: the window is counted by hand."""

import torch
from accelerate import Accelerator
from torch import nn


def main():
    accelerator = Accelerator()
    model = nn.Linear(32, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = accelerator.prepare(model, optimizer)
    for step in range(1000):  # DDP504
        loss = model(torch.randn(32, 32, device=accelerator.device)).square().mean() / 4
        accelerator.backward(loss)
        if (step + 1) % 4 == 0:
            optimizer.step()
            optimizer.zero_grad()


if __name__ == "__main__":
    main()
