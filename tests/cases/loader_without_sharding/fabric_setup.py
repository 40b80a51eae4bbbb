"""Fabric puts a distributed sampler into the loaders that it sets up."""

import torch
from lightning.fabric import Fabric
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    fabric = Fabric(accelerator="cuda", devices=2, strategy="ddp")
    fabric.launch()
    dataset = TensorDataset(torch.randn(512, 32), torch.randint(10, (512,)))
    loader = DataLoader(dataset, batch_size=32, shuffle=True, num_workers=4)
    loader = fabric.setup_dataloaders(loader)
    model = nn.Linear(32, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = fabric.setup(model, optimizer)
    for epoch in range(90):
        for inputs, targets in loader:
            loss = nn.functional.cross_entropy(model(inputs), targets)
            optimizer.zero_grad()
            fabric.backward(loss)
            optimizer.step()


if __name__ == "__main__":
    main()
