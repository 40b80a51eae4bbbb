"""Handles that a dataset keeps open from its constructor, and others closed or opened late."""

import zipfile

import h5py
import lmdb
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset


class Volumes(Dataset):
    def __init__(self, path):
        self.file = h5py.File(path, "r")  # DDP308

    def __len__(self):
        return len(self.file["volumes"])

    def __getitem__(self, index):
        return torch.from_numpy(self.file["volumes"][index])


class Faces(Dataset):
    def __init__(self, path):
        self.env = lmdb.open(path, max_readers=32, readonly=True, lock=False)  # DDP308
        with self.env.begin() as transaction:
            self.length = int(transaction.get(b"length"))

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        with self.env.begin() as transaction:
            return transaction.get(str(index).encode())


class Archive(Dataset):
    def __init__(self, path):
        self.archive = zipfile.ZipFile(path)  # DDP308
        self.names = self.archive.namelist()

    def __len__(self):
        return len(self.names)

    def read(self, name):
        return self.archive.read(name)

    def __getitem__(self, index):
        return self.read(self.names[index])


class Copied(Dataset):
    """Everything is copied and the handle closed again."""

    def __init__(self, path):
        file = h5py.File(path, "r")
        self.inputs = np.asarray(file["inputs"][:])
        file.close()

    def __len__(self):
        return len(self.inputs)

    def __getitem__(self, index):
        return torch.from_numpy(self.inputs[index])


class ClosedAfterCounting(Dataset):
    """The constructor opens it to count and closes it; each worker opens its own."""

    def __init__(self, path):
        self.path = path
        self.file = h5py.File(path, "r")
        self.length = len(self.file["volumes"])
        self.file.close()
        self.file = None

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        if self.file is None:
            self.file = h5py.File(self.path, "r")
        return torch.from_numpy(self.file["volumes"][index])


class OpenedEachTime(Dataset):
    def __init__(self, path):
        self.path = path
        with zipfile.ZipFile(path) as archive:
            self.names = archive.namelist()

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        with zipfile.ZipFile(self.path) as archive:
            return archive.read(self.names[index])


class OnlyLength(Dataset):
    """The handle stays open, but no sample is read from it."""

    def __init__(self, path, images):
        self.index = h5py.File(path, "r")
        self.images = images

    def __len__(self):
        return len(self.index["labels"])

    def __getitem__(self, index):
        return self.images[index]


class Feed(IterableDataset):
    """Opened when a worker begins to iterate."""

    def __init__(self, path):
        self.path = path

    def __iter__(self):
        with h5py.File(self.path, "r") as file:
            yield from file["volumes"]


def main():
    for dataset in (
        Volumes("train.h5"),
        Faces("faces.lmdb"),
        Archive("train.zip"),
        Copied("train.h5"),
        ClosedAfterCounting("train.h5"),
        OpenedEachTime("train.zip"),
        OnlyLength("labels.h5", torch.randn(512, 3)),
        Feed("train.h5"),
    ):
        loader = DataLoader(dataset, batch_size=8, num_workers=4)
        print(len(next(iter(loader))))


if __name__ == "__main__":
    main()
