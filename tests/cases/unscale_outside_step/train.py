"""The step lies in another file, behind a flag that this file sets per window."""

import torch
from step import careful, careless
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    device = torch.device("cuda")
    data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
    loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4, pin_memory=True)
    model = nn.Linear(32, 10).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cuda")
    for _ in range(3):
        for index, (images, labels) in enumerate(loader):
            images = images.to(device, non_blocking=True)
            labels = labels.to(device, non_blocking=True)
            with torch.amp.autocast("cuda"):
                loss = nn.functional.cross_entropy(model(images), labels) / 4
            careless(loss, model, optimizer, scaler, ends=(index + 1) % 4 == 0)
        for index, (images, labels) in enumerate(loader):
            images = images.to(device, non_blocking=True)
            labels = labels.to(device, non_blocking=True)
            with torch.amp.autocast("cuda"):
                loss = nn.functional.cross_entropy(model(images), labels) / 4
            careful(loss, model, optimizer, scaler, ends=(index + 1) % 4 == 0)


if __name__ == "__main__":
    main()
