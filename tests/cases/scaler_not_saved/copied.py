"""The model is stored as a copy in half precision, beside the optimizer's state."""

import os
from copy import deepcopy

import torch
from torch import nn
from torch.nn.parallel import DataParallel, DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda")
data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4)


def plain(model):
    return model.module if isinstance(model, DataParallel | DistributedDataParallel) else model


def main():
    model = nn.Linear(32, 10).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cuda")
    if os.path.exists("last.pt"):
        checkpoint = torch.load("last.pt")
        optimizer.load_state_dict(checkpoint["optimizer"])
    for epoch in range(10):
        for images, labels in loader:
            optimizer.zero_grad()
            with torch.amp.autocast("cuda"):
                loss = nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        checkpoint = {
            "epoch": epoch,
            "model": deepcopy(plain(model)).half(),
            "optimizer": optimizer.state_dict(),
        }
        torch.save(checkpoint, "last.pt")  # DDP212
        if epoch == 9:
            torch.save(checkpoint, "best.pt")
        torch.save({"model": deepcopy(model).half()}, "export.pt")


if __name__ == "__main__":
    main()
