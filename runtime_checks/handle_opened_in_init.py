"""A file handle opened in `__init__` is one for all workers: their reads move each other.

A forked worker shares the position of the file with the process that opened it.  Noted, after a
pass with one worker: how far the handle of the main process, which read nothing, has moved; and
whether the dataset could be sent to a worker that is not forked.
"""

from __future__ import annotations

import os
import pickle
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from torch.nn.functional import mse_loss
from torch.optim import SGD
from torch.utils.data import DataLoader, Dataset

from .context import device, rank, scratch
from .harness import Check, Seen
from .small import FEATURES, make_model

SAMPLES = 16
SETTINGS = {"batch": [8, FEATURES], "samples": SAMPLES, "num_workers": 1, "format": "zip"}


class Archive(Dataset[torch.Tensor]):
    def __init__(self, path: Path) -> None:
        self.archive = zipfile.ZipFile(path)  # DDP308

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, index: int) -> torch.Tensor:
        row = np.frombuffer(self.archive.read(f"{index}.f32"), dtype=np.float32)
        return torch.from_numpy(row.copy())


class LazyArchive(Dataset[torch.Tensor]):
    def __init__(self, path: Path) -> None:
        self.path = path
        self.archive: zipfile.ZipFile | None = None

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, index: int) -> torch.Tensor:
        if self.archive is None:
            self.archive = zipfile.ZipFile(self.path)
        row = np.frombuffer(self.archive.read(f"{index}.f32"), dtype=np.float32)
        return torch.from_numpy(row.copy())


def bad() -> Seen:
    gpu = device()
    model = make_model().to(gpu)
    optimizer = SGD(model.parameters(), lr=0.1)
    dataset = Archive(make_archive())
    loader = DataLoader(dataset, batch_size=8, num_workers=1, multiprocessing_context="fork")
    before = position(dataset.archive)
    for inputs in loader:
        optimizer.zero_grad()
        loss = mse_loss(model(inputs.to(gpu)), torch.zeros(8, 10, device=gpu))
        loss.backward()
        optimizer.step()
    return {"moved": position(dataset.archive) - before, "portable": portable(dataset)}


def good() -> Seen:
    gpu = device()
    model = make_model().to(gpu)
    optimizer = SGD(model.parameters(), lr=0.1)
    dataset = LazyArchive(make_archive())
    loader = DataLoader(dataset, batch_size=8, num_workers=1, multiprocessing_context="fork")
    before = position(dataset.archive)
    for inputs in loader:
        optimizer.zero_grad()
        loss = mse_loss(model(inputs.to(gpu)), torch.zeros(8, 10, device=gpu))
        loss.backward()
        optimizer.step()
    return {"moved": position(dataset.archive) - before, "portable": portable(dataset)}


def make_archive() -> Path:
    """A zip file of this rank's own with one row of float32 a sample."""
    path = scratch() / f"rows-{rank()}.zip"
    draw = np.random.default_rng(0)
    with zipfile.ZipFile(path, "w") as archive:
        for index in range(SAMPLES):
            row = draw.standard_normal(FEATURES, dtype=np.float32)
            archive.writestr(f"{index}.f32", row.tobytes())
        # Longer than a read buffer, so that the samples are not in memory from the start.
        archive.writestr("notes.txt", bytes(2**16))
    return path


def position(archive: zipfile.ZipFile | None) -> int:
    """Where the operating system stands in the file; 0 for one that is not open."""
    if archive is None or archive.fp is None:
        return 0
    return os.lseek(archive.fp.fileno(), 0, os.SEEK_CUR)


def portable(dataset: Archive | LazyArchive) -> bool:
    """Whether a spawned worker (macOS, Windows) could get the dataset."""
    try:
        pickle.dumps(dataset)
    except TypeError:
        return False
    return True


def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]:
    title = "main processes whose file position a worker moved"
    yield Check(title, sum(one["moved"] != 0 for one in bad), "==", len(bad), of="bad")
    yield Check(title, sum(one["moved"] != 0 for one in good), "==", 0, of="good")
    title = "ranks that could start a spawned worker"
    yield Check(title, sum(one["portable"] for one in bad), "==", 0, of="bad")
    yield Check(title, sum(one["portable"] for one in good), "==", len(good), of="good")
