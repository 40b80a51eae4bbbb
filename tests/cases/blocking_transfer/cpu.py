"""Stays on the CPU: there is nothing to overlap."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    device = torch.device("cpu")
    data = TensorDataset(torch.randn(512, 32), torch.randint(10, (512,)))
    loader = DataLoader(data, batch_size=64, shuffle=True)
    model = nn.Linear(32, 10).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        for images, labels in loader:
            images = images.to(device, non_blocking=True)
            labels = labels.to(device, non_blocking=True)
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()


if __name__ == "__main__":
    main()
