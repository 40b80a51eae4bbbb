"""Four images in one, from tiles that ``pack`` has decoded."""

import random
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import Dataset


class MosaicDataset(Dataset):
    def __init__(self, root):
        self.tiles = np.load(Path(root) / "tiles.npy", mmap_mode="r")
        self.targets = np.load(Path(root) / "targets.npy", mmap_mode="r")

    def __len__(self):
        return len(self.tiles)

    def __getitem__(self, index):
        others = random.choices(range(len(self)), k=3)
        tiles = [self.tiles[number] for number in (index, *others)]
        top, bottom = np.hstack(tiles[:2]), np.hstack(tiles[2:])
        canvas = np.vstack([top, bottom]).transpose(2, 0, 1)
        return torch.from_numpy(canvas.copy()), torch.from_numpy(self.targets[index].copy())
