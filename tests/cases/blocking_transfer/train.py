"""The loader that pins is built in another file, and so is the move."""

import torch
from data import build_loader
from move import to_device
from torch import nn


def main():
    device = torch.device("cuda")
    loader = build_loader(batch_size=64)
    model = nn.Linear(32, 10).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        for images, labels in loader:
            images, labels = to_device((images, labels), device)
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()


if __name__ == "__main__":
    main()
