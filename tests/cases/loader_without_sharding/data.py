"""Builds loaders for several programs."""

import torch
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def make_dataset():
    return TensorDataset(torch.randn(512, 32), torch.randint(10, (512,)))


def plain_loader(dataset, batch_size):
    return DataLoader(dataset, batch_size=batch_size, shuffle=True, num_workers=4)  # DDP304


def sharded_loader(dataset, batch_size):
    sampler = DistributedSampler(dataset)
    return DataLoader(dataset, batch_size=batch_size, sampler=sampler, num_workers=4)


def any_loader(dataset, sampler, batch_size=32):
    return DataLoader(dataset, batch_size, False, sampler, num_workers=4)
