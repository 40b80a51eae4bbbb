"""Filters that one sample in a hundred meets, and one that every other sample meets."""

import albumentations as A
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Slices(Dataset):
    def __init__(self, path):
        self.slices = np.load(path, mmap_mode="r")
        self.seldom = A.Compose([A.Blur(p=0.01), A.MedianBlur(p=0.01), A.ToGray(p=0.01)])
        self.often = A.Compose([A.HorizontalFlip(), A.MedianBlur(p=0.5)])

    def __len__(self):
        return len(self.slices)

    def __getitem__(self, index):
        image = self.seldom(image=self.slices[index])["image"]
        image = self.often(image=image)["image"]  # DDP303
        return torch.from_numpy(image)


if __name__ == "__main__":
    model = nn.Linear(512, 8).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for slices in DataLoader(Slices("train.npy"), batch_size=64, shuffle=True, num_workers=8):
        loss = model(slices.cuda().float()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
