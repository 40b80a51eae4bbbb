"""Fabric with one device is one process."""

import torch
from lightning.fabric import Fabric
from torch import nn


def main():
    fabric = Fabric(accelerator="cuda", devices=1, precision="bf16-mixed")
    fabric.launch()
    model = nn.Linear(32, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = fabric.setup(model, optimizer)
    for _ in range(1000):
        loss = model(torch.randn(32, 32, device=fabric.device)).square().mean()
        optimizer.zero_grad()
        fabric.backward(loss)
        optimizer.step()
    torch.save(model.state_dict(), "last.pt")


if __name__ == "__main__":
    main()
