"""A base class asks its own methods, which each class below answers in its own way."""

import sys
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms.functional import to_tensor


class Base(Dataset):
    def __init__(self, items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return self.picture(self.items[index])

    def picture(self, item):
        return to_tensor(Image.open(item).convert("L"))


class Arrays(Base):
    def picture(self, item):
        return torch.from_numpy(np.load(item))


class Photos(Base):
    def picture(self, item):
        return to_tensor(Image.open(item).resize((80, 80)))  # DDP302


class Clips(Base):
    def picture(self, item):
        frames = []
        for frame in item:
            image = Image.open(frame).convert("RGB")  # DDP302
            frames.append(to_tensor(image.resize((80, 80))))
        return torch.stack(frames)


class Unused(Base):
    """Nobody makes one."""

    def picture(self, item):
        return to_tensor(Image.open(item).rotate(90))


def build(name, items):
    if name == "arrays":
        return Arrays(items)
    if name == "photos":
        return Photos(items)
    return Clips(items)


if __name__ == "__main__":
    model = nn.Conv2d(3, 8, 3).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    dataset = build(sys.argv[1], sorted(Path("train").glob("*")))
    for batch in DataLoader(dataset, batch_size=4, shuffle=True, num_workers=8):
        loss = model(batch.cuda()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
