"""Images from a store that was made for the purpose, an LMDB or HDF5, at the size it was given."""

from io import BytesIO

import h5py
import lmdb
import six
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset
from tensorfn.data import LMDBReader
from torchvision.transforms.functional import to_tensor


class Faces(Dataset):
    def __init__(self, path, size):
        self.path = path
        self.size = size
        self.env = None

    def __len__(self):
        return 70000

    def __getitem__(self, index):
        if self.env is None:
            self.env = lmdb.open(self.path, readonly=True, lock=False)
        with self.env.begin() as transaction:
            raw = transaction.get(f"{self.size}-{index:05d}".encode())
        return to_tensor(Image.open(BytesIO(raw)))


class Birds(Dataset):
    def __init__(self, path):
        self.path = path
        self.file = None

    def __len__(self):
        return 512

    def __getitem__(self, index):
        if self.file is None:
            self.file = h5py.File(self.path, "r")
        return to_tensor(Image.open(BytesIO(self.file["birds"][index])))


class Words(Dataset):
    """Small pictures of words, through a buffer that is written to."""

    def __init__(self, path):
        self.path = path
        self.env = None

    def __len__(self):
        return 512

    def __getitem__(self, index):
        if self.env is None:
            self.env = lmdb.open(self.path, readonly=True, lock=False)
        with self.env.begin(write=False) as transaction:
            raw = transaction.get(f"image-{index:09d}".encode())
        buffer = six.BytesIO()
        buffer.write(raw)
        buffer.seek(0)
        return to_tensor(Image.open(buffer).convert("L"))


class Resolutions(Dataset):
    """Through a reader that is called after its store."""

    def __init__(self, path, size):
        self.reader = LMDBReader(path, reader="raw")
        self.size = size

    def __len__(self):
        return len(self.reader)

    def __getitem__(self, index):
        buffer = BytesIO(self.reader.get(f"{self.size}-{index:05d}".encode()))
        return to_tensor(Image.open(buffer))


def train(dataset):
    model = nn.Conv2d(3, 8, 3).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for images in DataLoader(dataset, batch_size=64, shuffle=True, num_workers=8):
        loss = model(images.cuda()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    train(Faces("faces", 64))
    train(Birds("birds.h5"))
    train(Words("words"))
    train(Resolutions("faces", 64))
