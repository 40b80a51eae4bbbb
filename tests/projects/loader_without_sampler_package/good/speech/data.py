"""Spectrograms that were computed beforehand."""

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Spectrograms(Dataset):
    def __init__(self, folder, split):
        self.values = np.load(f"{folder}/{split}-values.npy", mmap_mode="r")
        self.keywords = np.load(f"{folder}/{split}-keywords.npy")

    def __len__(self):
        return len(self.keywords)

    def __getitem__(self, index):
        return torch.from_numpy(self.values[index].copy()), int(self.keywords[index])


def build_loader(config, split):
    dataset = Spectrograms(config["data"], split)
    options = dict(batch_size=config["batch_size"], num_workers=config["workers"])
    if split == "train":
        options.update(sampler=DistributedSampler(dataset), drop_last=True)
    return DataLoader(dataset, **options)
