"""Images in folders, one folder per class: decoded once, read by every epoch.

``pack`` decodes and resizes the JPEGs into one array on disk.  An epoch then reads bytes, and
everything random happens to whole batches on the device, in ``to_input``.
"""

from __future__ import annotations

import argparse
import math
import os
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from PIL import Image
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset, Sampler
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


def pack(root: Path, size: int) -> None:
    """Decode ``root/<class>/<name>.jpg`` into one file of arrays, unless that was done before."""
    packed = root / f"packed-{size}"
    if packed.is_dir():
        return
    paths = sorted(root.glob("*/*.jpg"))
    classes = sorted({path.parent.name for path in paths})
    images = np.empty((len(paths), 3, size, size), dtype=np.uint8)
    for number, path in enumerate(paths):
        with Image.open(path) as image:
            pixels = np.asarray(image.convert("RGB").resize((size, size)))
        images[number] = pixels.transpose(2, 0, 1)
    unfinished = root / f"packed-{size}.unfinished"
    unfinished.mkdir(exist_ok=True)
    np.save(unfinished / "images.npy", images)
    np.save(unfinished / "labels.npy", [classes.index(path.parent.name) for path in paths])
    os.replace(unfinished, packed)


class PackedImages(Dataset[tuple[torch.Tensor, int]]):
    """What ``pack`` wrote: bytes of shape (3, size, size) and the number of the class."""

    def __init__(self, root: Path, size: int) -> None:
        self.images = np.load(root / f"packed-{size}" / "images.npy", mmap_mode="r")
        self.labels = np.load(root / f"packed-{size}" / "labels.npy").tolist()

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return torch.from_numpy(self.images[index].copy()), self.labels[index]


class EvenBatches(Sampler[list[int]]):
    """This process's share of a data set, every sample once over all processes.

    Nothing is repeated to make the shares even, yet all processes get the same number of
    batches (sizes differ by one at most), so that each collective in a forward meets its match.
    """

    def __init__(self, size: int, batch_size: int) -> None:
        world_size = dist.get_world_size()
        self.indices = range(dist.get_rank(), size, world_size)
        self.batches = math.ceil(math.ceil(size / world_size) / batch_size)

    def __len__(self) -> int:
        return self.batches

    def __iter__(self) -> Iterator[list[int]]:
        for batch in np.array_split(self.indices, self.batches):
            yield batch.tolist()


def make_loaders(args: argparse.Namespace) -> tuple[DataLoader, DataLoader]:
    train_set = PackedImages(args.data / "train", args.image_size)
    val_set = PackedImages(args.data / "val", args.image_size)
    options = {
        "num_workers": args.workers,
        "pin_memory": torch.cuda.is_available(),
        "persistent_workers": args.workers > 0,
    }
    train_loader = DataLoader(
        train_set,
        batch_size=args.batch_size,
        sampler=DistributedSampler(train_set),
        drop_last=True,
        **options,
    )
    val_loader = DataLoader(
        val_set, batch_sampler=EvenBatches(len(val_set), args.batch_size), **options
    )
    return train_loader, val_loader


def to_input(images: torch.Tensor, device: torch.device, train: bool = False) -> torch.Tensor:
    """Move a batch of bytes, normalise it, and for training mirror and blur it at random."""
    batch = images.to(device, non_blocking=True).float().div_(255).sub_(0.5).div_(0.25)
    if train:
        mirrored = torch.rand(len(batch), 1, 1, 1, device=device) < 0.5
        batch = blur(torch.where(mirrored, batch.flip(-1), batch), random.uniform(0.1, 2.0))
    return batch


def blur(batch: torch.Tensor, sigma: float, reach: int = 3) -> torch.Tensor:
    """Gaussian blur of a batch, as two convolutions along the two axes."""
    offsets = torch.arange(-reach, reach + 1, device=batch.device, dtype=batch.dtype)
    kernel = torch.softmax(-(offsets**2) / (2 * sigma**2), dim=0)
    rows = kernel.view(1, 1, -1, 1).repeat(3, 1, 1, 1)
    columns = kernel.view(1, 1, 1, -1).repeat(3, 1, 1, 1)
    padded = functional.pad(batch, (reach,) * 4, mode="reflect")
    return functional.conv2d(functional.conv2d(padded, rows, groups=3), columns, groups=3)
