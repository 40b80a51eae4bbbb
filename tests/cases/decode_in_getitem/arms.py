"""Alternatives of one `if` are one finding; and rows of a table that is filled once."""

import zipfile
from io import BytesIO

import cv2
import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset


def read(path):
    if isinstance(path, bytes):
        image = Image.open(BytesIO(path))  # DDP302
    elif ".zip@" in path:
        archive, name = path.split("@")
        with zipfile.ZipFile(archive) as file:
            image = Image.open(BytesIO(file.read(name)))
    else:
        with open(path, "rb") as file:
            image = Image.open(file)
    return np.asarray(image.convert("RGB"))


class Photos(Dataset):
    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        image = read(self.paths[index])
        if index % 2:
            mask = cv2.imread(f"masks/{index}.png", cv2.IMREAD_GRAYSCALE)  # DDP302
            image = image * mask[..., None]
        return torch.from_numpy(image)


class Kept(Dataset):
    """Decoded into the row that it is read from the next time."""

    def __init__(self, paths, keep):
        self.rows = [[path, None] for path in paths]
        self.keep = keep

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        path, image = self.rows[index]
        if self.keep and image is None:
            image = self.rows[index][1] = cv2.imread(path)
        return torch.from_numpy(image)


class Template(Dataset):
    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        raise NotImplementedError

    def prepare(self, sample):
        if len(sample) == 0:
            return self.__getitem__(0)
        return torch.from_numpy(sample)


class Pictures(Template):
    """Beside the one below, whose `prepare` asks for its own sample and never for this."""

    def __getitem__(self, index):
        return self.prepare(np.asarray(Image.open(self.paths[index])))


class Clouds(Template):
    def __getitem__(self, index):
        return self.prepare(np.fromfile(self.paths[index], dtype=np.float32))


def train(dataset):
    model = nn.LazyConv2d(8, 3).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for images in DataLoader(dataset, batch_size=64, shuffle=True, num_workers=8):
        loss = model(images.cuda().float()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    train(Photos(["a.jpg", "b.zip@b.jpg"]))
    train(Kept(["a.png"], True))
    train(Clouds(["a.bin"]))
