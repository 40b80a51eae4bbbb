"""Written once, after the last epoch, and nothing here goes on from it: it is a result."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def keep(state, path):
    torch.save(state, path)


def main():
    device = torch.device("cuda")
    data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
    loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4)
    model = nn.Linear(32, 10).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cuda")
    for _ in range(10):
        for images, labels in loader:
            optimizer.zero_grad()
            with torch.amp.autocast("cuda"):
                loss = nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
    keep({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, "last.pt")


if __name__ == "__main__":
    main()
