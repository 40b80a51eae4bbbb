"""Decoding a JPEG for every sample: the same pixels are decoded again in every epoch.

Counted: the pixels that Pillow decodes while two epochs train on files of two sizes.  The mend
decodes each file once, to the size that the model takes, and then only copies bytes.  Recorded
beside it, as observed: images per second of the ways in between (decoding at a fraction of the
size, copies that were resized beforehand) and how far their pixels are from a full decode.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch.nn.functional import cross_entropy
from torch.optim import SGD
from torch.utils.data import DataLoader, Dataset

from . import decoding
from .context import device, rank, scratch
from .decoding import SMALL, decoded_by_pillow
from .harness import Check, Seen, needs
from .images import write_jpegs
from .pictures import Bars
from .small import agreed, make_image_model

NEEDS = needs(modules=("PIL",))
EPOCHS = 2
#: How many files of which size, in pixels.
FILES = {(640, 480): 8, (2048, 1536): 2}
SETTINGS = {"files": "8 of 640x480, 2 of 2048x1536", "batch": [2, 3, *SMALL[::-1]], "workers": 0}
NOT_COVERED = ("DataLoader workers: more of them hide the cost until the cores are used up",)

Sample = tuple[torch.Tensor, int]


class Photos(Dataset[Sample]):
    def __init__(self, paths: Sequence[Path]) -> None:
        self.paths = paths

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Sample:
        image = Image.open(self.paths[index])  # DDP302
        array = np.array(image.convert("RGB").resize(SMALL))
        return torch.from_numpy(array).permute(2, 0, 1) / 255, index


class Bytes(Dataset[Sample]):
    """One array of uint8 [files, height, width, 3], mapped from a file."""

    def __init__(self, path: Path) -> None:
        self.images = np.load(path, mmap_mode="r")

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> Sample:
        array = np.array(self.images[index])
        return torch.from_numpy(array).permute(2, 0, 1) / 255, index


def bad() -> Seen:
    gpu = device()
    model = make_image_model().to(gpu)
    optimizer = SGD(model.parameters(), lr=0.1)
    dataset = Photos([path for paths in write_files().values() for path in paths])
    loader = DataLoader(dataset, batch_size=2, num_workers=0)
    with decoded_by_pillow() as decoded:
        for _ in range(EPOCHS):
            for images, labels in loader:
                optimizer.zero_grad()
                loss = cross_entropy(model(images.to(gpu)), labels.to(gpu))
                loss.backward()
                optimizer.step()
    return {"pixels": decoded.pixels, "images": decoded.images}


def good() -> Seen:
    gpu = device()
    model = make_image_model().to(gpu)
    optimizer = SGD(model.parameters(), lr=0.1)
    files = write_files()
    dataset = Bytes(decode_once([path for paths in files.values() for path in paths]))
    loader = DataLoader(dataset, batch_size=2, num_workers=0)
    with decoded_by_pillow() as decoded:
        for _ in range(EPOCHS):
            for images, labels in loader:
                optimizer.zero_grad()
                loss = cross_entropy(model(images.to(gpu)), labels.to(gpu))
                loss.backward()
                optimizer.step()
    return {"pixels": decoded.pixels, "images": decoded.images} | alternatives(files)


def write_files() -> dict[tuple[int, int], list[Path]]:
    """This rank's own JPEG files, by their size."""
    folder = scratch() / f"rank{rank()}"
    return {
        size: write_jpegs(folder / f"{size[0]}x{size[1]}", count, size)
        for size, count in FILES.items()
    }


def decode_once(paths: Sequence[Path]) -> Path:
    path = scratch() / f"decoded-{rank()}.npy"
    np.save(path, np.stack([decoding.full(each) for each in paths]))
    return path


def alternatives(files: dict[tuple[int, int], list[Path]]) -> Seen:
    """What stands between decoding all and decoding nothing: pixels per image, and rates."""
    pixels, observed = {}, {}
    for (width, height), paths in files.items():
        name = f"{width}x{height}"
        copies = decoding.shrink(paths, scratch() / f"copies-{rank()}-{name}")
        for way, read, these in (
            ("full", decoding.full, paths),
            ("draft", decoding.draft, paths),
            ("copies", decoding.full, copies),
        ):
            with decoded_by_pillow() as decoded:
                for path in these:
                    read(path)
            pixels[f"{name} {way}"] = decoded.pixels // len(paths)
        observed[name] = decoding.rates(paths, copies)
    return {"pixels per image": pixels, "observed": observed}


def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]:
    every = sum(width * height * count for (width, height), count in FILES.items())
    title = "pixels decoded per epoch"
    yield Check(title, agreed(one["pixels"] / EPOCHS for one in bad), "==", every, of="bad")
    yield Check(title, agreed(one["pixels"] / EPOCHS for one in good), "==", 0, of="good")
    for one in good:
        pixels = one.get("pixels per image", {})
        for size, least in ("640x480", 16), ("2048x1536", 163):
            for way in "copies", "draft":
                # Draft stops at a power of two, at 1/8 for the larger files.
                factor = pixels.get(f"{size} full", 0) / pixels.get(f"{size} {way}", 1)
                atleast = min(least, 64) if way == "draft" else least
                title = f"times fewer pixels from {size}, {way}"
                yield Check(title, factor, ">=", atleast, of="good")


def picture(bad: Sequence[Seen], good: Sequence[Seen]) -> Bars:
    pixels = good[0].get("pixels per image", {})
    names = {"full": "bad: full decode", "draft": "draft mode", "copies": "good: resized copies"}
    return Bars(
        title="Pixels decoded for one sample of a 2048x1536 file",
        y_label="pixels",
        bars={title: pixels.get(f"2048x1536 {way}", 0) for way, title in names.items()},
        log_y=True,
    )
