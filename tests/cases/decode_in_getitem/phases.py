"""Arms that training never takes, the pass that fills a cache, and datasets of tests."""

import cv2
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Photos(Dataset):
    """Decoded in its test phase only."""

    def __init__(self, opt):
        self.opt = opt
        self.paths = opt["paths"]

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        if self.opt["phase"] == "train":
            return torch.load(self.paths[index])
        return torch.from_numpy(cv2.imread(self.paths[index], cv2.IMREAD_UNCHANGED))


class Faces(Dataset):
    """Decoded in training."""

    def __init__(self, opt):
        self.is_train = opt["phase"] == "train"
        self.mode = opt["phase"]
        self.paths = opt["paths"]

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        if self.mode in ("val", "test"):
            return torch.from_numpy(cv2.imread(self.paths[index], cv2.IMREAD_GRAYSCALE))
        if not self.is_train:
            face = cv2.imread(self.paths[index], cv2.IMREAD_UNCHANGED)
        elif self.mode != "test":
            face = cv2.imread(self.paths[index], cv2.IMREAD_COLOR)  # DDP302
        return torch.from_numpy(face)


class Latents(Dataset):
    """One method fills the cache, in one pass; the other one decodes in every epoch."""

    def __init__(self, opt):
        self.caching_mode = opt["caching"]
        self.paths = opt["paths"]

    def __len__(self):
        return len(self.paths)

    def read(self, path):
        return cv2.imread(path)  # DDP302

    def for_caching(self, index):
        return cv2.imread(self.paths[index], cv2.IMREAD_COLOR), self.read(self.paths[index])

    def __getitem__(self, index):
        if self.caching_mode is not None:
            return self.for_caching(index)
        return torch.from_numpy(self.read(self.paths[index]))


class PhotosToTest(Dataset):
    """A factory could make one for training, but this is what tests read."""

    def __init__(self, opt):
        self.paths = opt["paths"]

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        return torch.from_numpy(cv2.imread(self.paths[index]))


def make(opt):
    if opt["kind"] == "photos":
        kind = Photos
    elif opt["kind"] == "faces":
        kind = Faces
    elif opt["kind"] == "latents":
        kind = Latents
    else:
        kind = PhotosToTest
    return kind(opt)


def main(opt):
    for phase, part in opt["datasets"].items():
        if phase == "train":
            loader = DataLoader(make(part), batch_size=8, shuffle=True, num_workers=4)
        else:
            tests = DataLoader(make(part), batch_size=1)
    net = nn.Conv2d(3, 3, 3, padding=1).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(10):
        for x in loader:
            loss = net(x.cuda()).abs().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(len(tests))


if __name__ == "__main__":
    main({})
