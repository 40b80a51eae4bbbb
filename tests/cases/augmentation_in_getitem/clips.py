"""Several files that are one sample: a window of frames, and frames or views of one item.

Nothing is said of them: the pixels of all frames of all videos are more than a disk holds.
"""

import random
from pathlib import Path

import cv2
import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset


def unpack(content):
    return cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_COLOR)


class Windows(Dataset):
    """Frames in a row; only where the row begins is random."""

    def __init__(self, root, length):
        self.root = Path(root)
        self.length = length

    def __len__(self):
        return 1000

    def __getitem__(self, index):
        start = random.randint(0, 900)
        numbers = list(range(start, start + self.length))
        frames = []
        for number in numbers:
            content = (self.root / f"{number:06}.png").read_bytes()
            frames.append(unpack(content))
        return torch.from_numpy(np.stack(frames)).float()


class Around(Dataset):
    """One frame is drawn, as an array of one; a method names those that follow it."""

    def __init__(self, folders, counts):
        self.folders = folders
        self.counts = counts

    def __len__(self):
        return len(self.folders)

    def following(self, first):
        folder, _, number = first[:-4].rpartition("/")
        return [f"{folder}/{int(number) + k:04}.png" for k in range(5)]

    def __getitem__(self, index):
        first = np.random.choice(self.counts[index] - 4, replace=True, size=1)[0] + 1
        frames = []
        for path in self.following(f"{self.folders[index]}/{first:04}.png"):
            frames.append(cv2.imread(path).transpose(2, 0, 1))
        return torch.from_numpy(np.stack(frames)).float()


class Slices(Dataset):
    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        start = random.randrange(len(self.paths) - 16)
        frames = [cv2.imread(path) for path in self.paths[start : start + 16]]
        return torch.from_numpy(np.stack(frames)).float()


class OneOfTheClips(Dataset):
    def __init__(self, clips):
        self.clips = clips

    def __len__(self):
        return len(self.clips)

    def __getitem__(self, index):
        frames = [cv2.imread(path) for path in random.choice(self.clips)]
        return torch.from_numpy(np.stack(frames)).float()


class Views(Dataset):
    """Some of the pictures of the item that was asked for, each an input of its own."""

    def __init__(self, items, most):
        self.items = items
        self.most = most

    def __len__(self):
        return len(self.items)

    def views(self, item):
        paths = item["pictures"]
        chosen = sorted(random.sample(range(len(paths)), self.most))
        found = []
        for number in chosen:
            path = paths[number]
            found.append(np.asarray(Image.open(path).convert("RGB")))
        return found

    def __getitem__(self, index):
        item = self.items[index]
        return torch.from_numpy(np.stack(self.views(item)))


class Tiles(Dataset):
    """A mosaic: the pictures of other samples."""

    def __init__(self, paths, size):
        self.paths = paths
        self.size = size

    def __len__(self):
        return len(self.paths)

    def read(self, index, size):
        return cv2.resize(cv2.imread(self.paths[index]), (size, size))  # DDP303

    def mosaic(self, index, size):
        indices = [index] + [random.randint(0, len(self.paths) - 1) for _ in range(3)]
        canvas = np.zeros((2 * size, 2 * size, 3), np.uint8)
        for place, index in enumerate(indices):
            top, left = divmod(place, 2)
            tile = self.read(index, size)
            canvas[top * size : (top + 1) * size, left * size : (left + 1) * size] = tile
        return canvas

    def __getitem__(self, index):
        return torch.from_numpy(self.mosaic(index, self.size)).float()


class Pairs(Dataset):
    """Mixed with others that an array of random numbers names."""

    def __init__(self, paths):
        self.paths = np.array(paths)

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        others = self.paths[np.random.randint(0, len(self.paths), 3)]
        mixed = sum(cv2.imread(path) for path in others)  # DDP303
        return torch.from_numpy(mixed).float()


class Stages(Dataset):
    """A random order of stages, one of which reads a file: not one file for each stage."""

    def __init__(self, paths, noise):
        self.paths = paths
        self.noise = noise

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        picture = np.zeros((64, 64, 3), np.uint8)
        for stage in random.sample(range(3), 3):
            if stage == 0:
                picture = picture + cv2.imread(self.noise)  # DDP302
            elif stage == 1:
                picture = picture[::-1].copy()
        return torch.from_numpy(picture).float()


def train(dataset):
    model = nn.LazyConv2d(8, 3).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in DataLoader(dataset, batch_size=8, shuffle=True, num_workers=8):
        loss = model(batch.cuda().float()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main():
    paths = ["a.png", "b.png", "c.png", "d.png"]
    train(Windows("frames", 16))
    train(Around(paths, [90, 90, 90, 90]))
    train(Slices(paths))
    train(OneOfTheClips([paths, paths]))
    train(Views([{"pictures": paths}], 2))
    train(Tiles(paths, 80))
    train(Pairs(paths))
    train(Stages(paths, "noise.png"))


if __name__ == "__main__":
    main()
