"""Loaders of a GPU training loop without workers, and why some have none."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torchvision.datasets import ImageFolder
from torchvision.transforms import ToTensor


def train(loader):
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten()).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for images, targets in loader:
        loss = nn.functional.cross_entropy(model(images.cuda()), targets.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def evaluate(loader):
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten()).cuda().eval()
    with torch.no_grad():
        return torch.cat([model(images.cuda()).argmax(1) for images, _ in loader])


def main():
    files = ImageFolder("train", ToTensor())
    train(DataLoader(files, batch_size=64, shuffle=True))  # DDP309
    train(DataLoader(files, batch_size=64, shuffle=True, pin_memory=False))  # DDP309
    train(DataLoader(files, batch_size=64, shuffle=True, num_workers=4))
    train(DataLoader(files, 64, True, None, None, 4))
    train(DataLoader(files, batch_size=64, shuffle=True, num_workers=0))
    options = {"batch_size": 64, "num_workers": 8}
    train(DataLoader(files, **options))
    memory = TensorDataset(torch.randn(512, 3, 32, 32), torch.randint(8, (512,)))
    train(DataLoader(memory, batch_size=64, shuffle=True))
    evaluate(DataLoader(ImageFolder("val", ToTensor()), batch_size=64))


if __name__ == "__main__":
    main()
