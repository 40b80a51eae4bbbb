"""Decoding for each sample with several libraries, in a helper too; and what is no decoding."""

import os

import cv2
import librosa
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms.functional import to_tensor


class Pillow(Dataset):
    def __init__(self, paths, transform=None):
        self.paths = paths
        self.transform = transform

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        image = Image.open(self.paths[index])  # DDP302
        if image.mode != "RGB":
            raise ValueError(f"{self.paths[index]} has no colours")
        return self.transform(image) if self.transform else to_tensor(image)


class OpenCV(Dataset):
    def __init__(self, root, files):
        self.root = root
        self.files = files

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        path = os.path.join(self.root, self.files[index])
        image = cv2.imread(path, cv2.IMREAD_COLOR)  # DDP302
        return torch.from_numpy(image).permute(2, 0, 1)


def read_image(path):
    with open(path, "rb") as file:
        return Image.open(file).convert("RGB")  # DDP302


class Helper(Dataset):
    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def load(self, index):
        return to_tensor(read_image(self.paths[index]))

    def __getitem__(self, index):
        return self.load(index), index


class Speech(Dataset):
    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        wave, _ = librosa.load(self.paths[index], sr=16_000)  # DDP302
        return torch.from_numpy(wave)


class Cached(Dataset):
    """Every image is decoded once and then kept."""

    def __init__(self, paths):
        self.paths = paths
        self.cache = {}

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        if index not in self.cache:
            self.cache[index] = to_tensor(Image.open(self.paths[index]).convert("RGB"))
        return self.cache[index]


class DecodedBefore(Dataset):
    """Everything is decoded in the constructor."""

    def __init__(self, paths):
        self.images = [to_tensor(Image.open(path).convert("RGB")) for path in paths]

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return self.images[index].clone()


class InMemory(Dataset):
    def __init__(self, tensor):
        self.tensor = tensor

    def __len__(self):
        return len(self.tensor)

    def __getitem__(self, index):
        return self.tensor[index].clone()


class FromArray(Dataset):
    """Pixels that are in memory become an image again; nothing is decoded."""

    def __init__(self, pixels, transform):
        self.pixels = pixels
        self.transform = transform

    def __len__(self):
        return len(self.pixels)

    def __getitem__(self, index):
        return self.transform(Image.fromarray(self.pixels[index]))


class ScaledWhileDecoded(Dataset):
    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        image = cv2.imread(self.paths[index], cv2.IMREAD_REDUCED_COLOR_4)
        return torch.from_numpy(image).permute(2, 0, 1)


def train(dataset):
    model = nn.LazyConv2d(8, 3).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in DataLoader(dataset, batch_size=64, shuffle=True, num_workers=8):
        images = batch[0] if isinstance(batch, (list, tuple)) else batch
        loss = model(images.cuda()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main():
    paths = sorted(os.listdir("train"))
    train(Pillow(paths))
    train(OpenCV("train", paths))
    train(Helper(paths))
    train(Speech(paths))
    train(Cached(paths))
    train(DecodedBefore(paths))
    train(InMemory(torch.randn(512, 3, 32, 32)))
    train(FromArray(torch.zeros(512, 32, 32, 3, dtype=torch.uint8).numpy(), to_tensor))
    train(ScaledWhileDecoded(paths))


if __name__ == "__main__":
    main()
