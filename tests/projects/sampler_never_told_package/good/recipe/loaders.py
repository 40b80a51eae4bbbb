"""Loaders for one process or many."""

from torch.utils.data import DataLoader, RandomSampler, SequentialSampler
from torch.utils.data.distributed import DistributedSampler


def make_loader(dataset, batch_size, distributed, train=True):
    if distributed:
        sampler = DistributedSampler(dataset, shuffle=train, drop_last=train)
    else:
        sampler = RandomSampler(dataset) if train else SequentialSampler(dataset)
    return DataLoader(dataset, batch_size=batch_size, sampler=sampler, num_workers=4)
