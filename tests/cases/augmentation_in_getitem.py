"""Mosaics, many crops, blurs and warps for each sample; and what is light or done once."""

import random

import cv2
import numpy as np
import torch
from PIL import Image, ImageFilter
from scipy import ndimage
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms import v2 as transforms


class Mosaic(Dataset):
    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        tiles = []
        for i in [index, *random.choices(range(len(self.paths)), k=3)]:
            tile = cv2.imread(self.paths[i])  # DDP303
            tiles.append(cv2.resize(tile, (80, 80)))
        canvas = np.vstack([np.hstack(tiles[:2]), np.hstack(tiles[2:])])
        return torch.from_numpy(canvas).permute(2, 0, 1)


class ManyCrops(Dataset):
    def __init__(self, images, crops):
        self.images = np.load(images, mmap_mode="r")
        self.crops = [
            transforms.Compose([transforms.RandomResizedCrop(size), transforms.ColorJitter(0.4)])
            for size in crops
        ]

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        image = torch.from_numpy(self.images[index].copy())
        return [crop(image) for crop in self.crops]  # DDP303


class Blurred(Dataset):
    def __init__(self, images):
        self.images = np.load(images, mmap_mode="r")

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        image = cv2.GaussianBlur(np.array(self.images[index]), (23, 23), 0)  # DDP303
        return torch.from_numpy(image).permute(2, 0, 1)


class Spread(Dataset):
    def __init__(self, images, kernel):
        self.images = np.load(images, mmap_mode="r")
        self.kernel = kernel

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return torch.from_numpy(ndimage.convolve(self.images[index], self.kernel))  # DDP303


class Warped(Dataset):
    def __init__(self, images):
        self.images = np.load(images, mmap_mode="r")
        self.warp = transforms.ElasticTransform(alpha=50.0)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return self.warp(torch.from_numpy(self.images[index].copy()))  # DDP303


class Filtered(Dataset):
    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        image = Image.open(self.paths[index]).convert("RGB")  # DDP302
        image = image.filter(ImageFilter.GaussianBlur(random.uniform(0.1, 2.0)))  # DDP303
        return torch.from_numpy(np.array(image)).permute(2, 0, 1)


class Light(Dataset):
    """Flips and normalisation are cheap."""

    def __init__(self, images):
        self.images = np.load(images, mmap_mode="r")
        self.transform = transforms.Compose(
            [transforms.RandomHorizontalFlip(), transforms.Normalize([0.5] * 3, [0.5] * 3)]
        )

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return self.transform(torch.from_numpy(self.images[index] / np.float32(255)))


class ImageAndMask(Dataset):
    """Two files belong to one sample; each is decoded once, which is a note and no more."""

    def __init__(self, images, masks):
        self.images = images
        self.masks = masks

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        image = cv2.imread(self.images[index])  # DDP302
        mask = cv2.imread(self.masks[index], cv2.IMREAD_GRAYSCALE)  # DDP302
        return torch.from_numpy(np.dstack([image, mask])).permute(2, 0, 1)


class SmoothedBefore(Dataset):
    """The filter runs in the constructor, once."""

    def __init__(self, images):
        self.images = [cv2.GaussianBlur(image, (23, 23), 0) for image in np.load(images)]

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return torch.from_numpy(self.images[index]).permute(2, 0, 1)


def train(dataset):
    model = nn.LazyConv2d(8, 3).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in DataLoader(dataset, batch_size=64, shuffle=True, num_workers=8):
        images = batch[0] if isinstance(batch, list) else batch
        loss = model(images.cuda().float()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main():
    paths = ["a.jpg", "b.jpg", "c.jpg", "d.jpg"]
    train(Mosaic(paths))
    train(ManyCrops("train.npy", [224] * 2 + [96] * 6))
    train(Blurred("train.npy"))
    train(Spread("train.npy", np.ones((25, 25, 1)) / 625))
    train(Warped("train.npy"))
    train(Filtered(paths))
    train(Light("train.npy"))
    train(ImageAndMask(paths, paths))
    train(SmoothedBefore("train.npy"))


if __name__ == "__main__":
    main()
