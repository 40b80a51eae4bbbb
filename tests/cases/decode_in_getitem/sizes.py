"""Images that are given another size for each sample: there is none to keep them at.

A map of labels goes through the same transforms, in a dictionary of its own.
"""

import random

import cv2
import numpy as np
import torch
import torchvision.transforms as T
import torchvision.transforms.functional as F
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset


def resize(image, target, size):
    image = F.resize(image, size)
    if "map" in target:
        target["map"] = nn.functional.interpolate(target["map"][None].float(), size)[0]
    return image, target


class RandomSize:
    def __init__(self, sizes):
        self.sizes = sizes

    def __call__(self, image, target):
        size = random.choice(self.sizes)
        return resize(image, target, size)


class Sequence:
    def __init__(self, steps):
        self.steps = steps

    def __call__(self, image, target):
        for step in self.steps:
            image, target = step(image, target)
        return image, target


class Panoptic(Dataset):
    def __init__(self, names, steps):
        self.names = names
        self.steps = steps

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        image = Image.open(self.names[index]).convert("RGB")
        ids = np.asarray(Image.open(self.names[index] + ".png"), dtype=np.uint32)
        target = {"map": torch.as_tensor(ids[..., 0] + 256 * ids[..., 1])}
        image, target = self.steps(image, target)
        return F.to_tensor(image), target["map"]


class Chosen(Dataset):
    """The image is given one of three sizes; the map of labels stays as it is."""

    def __init__(self, names):
        self.names = names
        self.steps = T.Compose(
            [T.RandomChoice([T.Resize(s) for s in (480, 640, 800)]), T.ToTensor()]
        )

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        image = self.steps(Image.open(self.names[index]).convert("RGB"))
        ids = np.asarray(Image.open(self.names[index] + ".png"), dtype=np.uint32)  # DDP302
        return image, torch.as_tensor(ids[..., 0] + 256 * ids[..., 1])


class Zoomed(Dataset):
    def __init__(self, names):
        self.names = names

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        image = cv2.imread(self.names[index])
        factor = random.uniform(0.5, 2.0)
        height, width = int(image.shape[0] * factor), int(image.shape[1] * factor)
        return torch.from_numpy(cv2.resize(image, (width, height)))


class Drawn(Dataset):
    """Which file is read is drawn, not the size that it gets."""

    def __init__(self, names):
        self.names = names

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        image = cv2.imread(self.names[random.randint(0, len(self.names) - 1)])  # DDP302
        height = 64 * image.shape[0] // image.shape[1]
        return torch.from_numpy(cv2.resize(image, (64, height)))


class Neutral(Dataset):
    """One frame of each clip, another one each time."""

    def __init__(self, folders):
        self.folders = folders

    def __len__(self):
        return len(self.folders)

    def __getitem__(self, index):
        number = random.randrange(100)
        return torch.from_numpy(cv2.imread(f"{self.folders[index]}/{number:04}.jpg"))


def train(dataset):
    model = nn.LazyConv2d(8, 3).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in DataLoader(dataset, batch_size=1, shuffle=True, num_workers=8):
        images = batch[0] if isinstance(batch, (list, tuple)) else batch
        loss = model(images.cuda()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    files = ["a.jpg", "b.jpg"]
    train(Panoptic(files, Sequence([RandomSize([480, 640, 800])])))
    train(Chosen(files))
    train(Zoomed(files))
    train(Drawn(files))
    train(Neutral(["a", "b"]))
