"""A mosaic in `__getitem__` decodes four files for one sample.

Counted: the files that Pillow decodes for one epoch.  The mend reads bytes that were decoded
once and puts the mosaic together on the device, for the whole batch at a time.  Recorded beside
it, as observed: how long a blur takes per sample with Pillow, and on the batch with torch.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageFilter
from torch.nn.functional import avg_pool2d, cross_entropy
from torch.optim import SGD
from torch.utils.data import DataLoader, Dataset

from . import decoding
from .context import device, rank, scratch
from .decoding import decoded_by_pillow
from .harness import Check, Seen, needs
from .images import write_jpegs
from .small import agreed, make_image_model

NEEDS = needs(modules=("PIL",))
FILES = 16
TILE = (80, 60)
SETTINGS = {"files": "16 of 640x480", "batch": [4, 3, 120, 160], "tiles per sample": 4}

Sample = tuple[torch.Tensor, int]


class Mosaics(Dataset[Sample]):
    def __init__(self, paths: Sequence[Path]) -> None:
        self.paths = paths

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Sample:
        canvas = Image.new("RGB", (160, 120))
        others = random.choices(range(len(self.paths)), k=3)
        for place, other in enumerate([index, *others]):
            tile = Image.open(self.paths[other])  # DDP303
            corner = (place % 2 * TILE[0], place // 2 * TILE[1])
            canvas.paste(tile.convert("RGB").resize(TILE), corner)
        return torch.from_numpy(np.array(canvas)).permute(2, 0, 1) / 255, index % 10


class Tiles(Dataset[Sample]):
    """One decoded image a sample; the mosaic comes later."""

    def __init__(self, path: Path) -> None:
        self.images = np.load(path, mmap_mode="r")

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> Sample:
        array = np.array(self.images[index])
        return torch.from_numpy(array).permute(2, 0, 1) / 255, index % 10


def mosaic(tiles: torch.Tensor) -> torch.Tensor:
    """Of each image [batch, 3, h, w] and three others of its batch: [batch, 3, 2 h, 2 w]."""
    a, b, c, d = (tiles.roll(shift, dims=0) for shift in range(4))
    return torch.cat([torch.cat([a, b], dim=3), torch.cat([c, d], dim=3)], dim=2)


def bad() -> Seen:
    gpu = device()
    model = make_image_model().to(gpu)
    optimizer = SGD(model.parameters(), lr=0.1)
    loader = DataLoader(Mosaics(write_files()), batch_size=4, shuffle=True, num_workers=0)
    with decoded_by_pillow() as decoded:
        for images, labels in loader:
            optimizer.zero_grad()
            loss = cross_entropy(model(images.to(gpu)), labels.to(gpu))
            loss.backward()
            optimizer.step()
    return {"decoded": decoded.images, "shape": list(images.shape)}


def good() -> Seen:
    gpu = device()
    model = make_image_model().to(gpu)
    optimizer = SGD(model.parameters(), lr=0.1)
    loader = DataLoader(Tiles(decode_once(write_files())), batch_size=4, shuffle=True)
    with decoded_by_pillow() as decoded:
        for tiles, labels in loader:
            images = mosaic(tiles.to(gpu))
            optimizer.zero_grad()
            loss = cross_entropy(model(images), labels.to(gpu))
            loss.backward()
            optimizer.step()
    return {"decoded": decoded.images, "shape": list(images.shape), "observed": blur_seconds()}


def write_files() -> list[Path]:
    """This rank's own JPEG files."""
    return write_jpegs(scratch() / f"rank{rank()}", FILES, (640, 480))


def decode_once(paths: Sequence[Path]) -> Path:
    """The tiles as one array of uint8 [files, height, width, 3] in a file."""
    path = scratch() / f"tiles-{rank()}.npy"
    tiles = [Image.fromarray(decoding.full(each)).resize(TILE) for each in paths]
    np.save(path, np.stack([np.asarray(tile) for tile in tiles]))
    return path


def blur_seconds() -> dict[str, float]:
    """A box blur of 32 images of 160x120: one by one on the CPU, and all at once on the device."""
    draw = np.random.default_rng(0)
    arrays = draw.integers(0, 256, (32, 120, 160, 3), np.uint8)
    began = time.perf_counter()
    for array in arrays:
        Image.fromarray(array).filter(ImageFilter.BoxBlur(3))
    alone = time.perf_counter() - began
    batch = torch.from_numpy(arrays).to(device()).permute(0, 3, 1, 2).float()
    avg_pool2d(batch, 7, stride=1, padding=3).sum().item()
    began = time.perf_counter()
    avg_pool2d(batch, 7, stride=1, padding=3).sum().item()
    return {"one by one, Pillow": alone, "the batch, torch": time.perf_counter() - began}


def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]:
    title = "files decoded per sample"
    yield Check(title, agreed(one["decoded"] / FILES for one in bad), "==", 4.0, of="bad")
    yield Check(title, agreed(one["decoded"] / FILES for one in good), "==", 0.0, of="good")
    shapes = {tuple(one["shape"]) for one in (*bad, *good)}
    yield Check("shapes that reach the model", sorted(shapes), "==", [(4, 3, 120, 160)], of="good")
