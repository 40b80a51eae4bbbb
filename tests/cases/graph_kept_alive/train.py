"""The loss is handed to meters in another file: one keeps it, one reads it first."""

import torch
from meters import Keeper, Reader
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def train_one_step(model, images, labels, optimizer):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
    return loss


def main():
    device = torch.device("cuda")
    data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
    loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4, pin_memory=True)
    model = nn.Linear(32, 10).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    keeper, detached, reader = Keeper(), Keeper(), Reader()
    for _ in range(3):
        for images, labels in loader:
            images = images.to(device, non_blocking=True)
            labels = labels.to(device, non_blocking=True)
            loss = train_one_step(model, images, labels, optimizer)
            keeper.update(loss=loss, seen=images.size(0))  # DDP601
            detached.update(loss=loss.detach(), seen=images.size(0))
            reader.update(loss)


if __name__ == "__main__":
    main()
