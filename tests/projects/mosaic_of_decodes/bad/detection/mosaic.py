"""Four images in one: the augmentation of the single-shot detectors."""

import random
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import Dataset

from .image_io import read_rgb


class MosaicDataset(Dataset):
    def __init__(self, root, size=640):
        self.images = sorted(Path(root).glob("images/*.jpg"))
        self.targets = np.load(Path(root) / "targets.npy", mmap_mode="r")
        self.size = size

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        others = random.choices(range(len(self)), k=3)
        tiles = [self.load_tile(number) for number in (index, *others)]
        top, bottom = np.hstack(tiles[:2]), np.hstack(tiles[2:])
        canvas = np.vstack([top, bottom]).transpose(2, 0, 1)
        return torch.from_numpy(canvas.copy()), torch.from_numpy(self.targets[index].copy())

    def load_tile(self, number):
        return read_rgb(self.images[number], self.size // 2)
