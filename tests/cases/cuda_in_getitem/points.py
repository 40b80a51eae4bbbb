"""The dataset, and the function with which it moves a sample."""

import torch
from torch.utils.data import Dataset


def to_device(value):
    return value.cuda()  # DDP307


class Points(Dataset):
    def __len__(self):
        return 512

    def __getitem__(self, index):
        return to_device(torch.full((32,), float(index)))
