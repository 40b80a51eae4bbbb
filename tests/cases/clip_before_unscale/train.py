"""Two trainers: one has its optimizer work done well in another file, one not."""

import torch
from optim import FullPrecision, Half, HalfDoneWell
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def train(model, loader, work, device):
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        with work.context():
            loss = nn.functional.cross_entropy(model(images), labels)
        work.backward(loss)
        work.step()


def main():
    device = torch.device("cuda")
    data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
    loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4, pin_memory=True)
    model = nn.Linear(32, 10).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        train(model, loader, FullPrecision(model, optimizer), device)
        train(model, loader, Half(model, optimizer), device)
        train(model, loader, HalfDoneWell(model, optimizer), device)


if __name__ == "__main__":
    main()
