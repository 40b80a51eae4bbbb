"""Images in folders, one folder per class, and the loaders that read them."""

from __future__ import annotations

import argparse
import random
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageFilter, ImageOps
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

CLASSES = ("brick", "grass", "sand", "snow", "water")
COLOURS = ((178, 84, 60), (70, 140, 50), (210, 190, 130), (230, 230, 240), (50, 90, 170))


def make_synthetic(root: Path, size: int = 64) -> None:
    """Write small JPEGs: every class has a colour of its own, and a lot of noise."""
    noise = np.random.default_rng(0)
    for split, per_class in (("train", 32), ("val", 9)):
        for name, colour in zip(CLASSES, COLOURS, strict=True):
            folder = root / split / name
            if folder.is_dir():
                continue
            folder.mkdir(parents=True)
            for number in range(per_class):
                pixels = np.array(colour) + noise.normal(0, 60, (size, size, 3))
                image = Image.fromarray(pixels.clip(0, 255).astype(np.uint8))
                image.save(folder / f"{number:03}.jpg", quality=90)


class JpegFolder(Dataset[tuple[torch.Tensor, int]]):
    """``root/<class>/<name>.jpg``; images come out normalised, of shape (3, size, size)."""

    def __init__(self, root: Path, size: int, train: bool) -> None:
        self.paths = sorted(root.glob("*/*.jpg"))
        self.classes = sorted({path.parent.name for path in self.paths})
        self.size = size
        self.train = train

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        path = self.paths[index]
        image = Image.open(path).convert("RGB")  # DDP302
        image = image.resize((self.size, self.size))
        if self.train:
            if random.random() < 0.5:
                image = ImageOps.mirror(image)
            image = image.filter(ImageFilter.GaussianBlur(random.uniform(0.1, 2.0)))  # DDP303
        pixels = torch.from_numpy(np.array(image)).permute(2, 0, 1).float() / 255
        return (pixels - 0.5) / 0.25, self.classes.index(path.parent.name)


def make_loaders(args: argparse.Namespace) -> tuple[DataLoader, DataLoader]:
    train_set = JpegFolder(args.data / "train", args.image_size, train=True)
    val_set = JpegFolder(args.data / "val", args.image_size, train=False)
    options = {
        "batch_size": args.batch_size,
        "num_workers": args.workers,
        "pin_memory": torch.cuda.is_available(),
        "persistent_workers": args.workers > 0,
    }
    train_loader = DataLoader(
        train_set, sampler=DistributedSampler(train_set), drop_last=True, **options
    )
    val_loader = DataLoader(
        val_set,
        sampler=DistributedSampler(val_set, shuffle=False),  # DDP305
        **options,
    )
    return train_loader, val_loader
