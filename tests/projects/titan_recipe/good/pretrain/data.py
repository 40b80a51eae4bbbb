"""An endless stream of tokens, every rank its own part of it."""

import numpy as np
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, IterableDataset


class Windows(IterableDataset):
    def __init__(self, path, length, rank, world_size):
        self.path = path
        self.length = length
        self.rank = rank
        self.world_size = world_size

    def __iter__(self):
        tokens = np.memmap(self.path, dtype=np.uint16, mode="r")
        windows = (len(tokens) - 1) // self.length
        while True:
            for number in range(self.rank, windows, self.world_size):
                start = number * self.length
                window = tokens[start : start + self.length + 1].astype(np.int64)
                yield torch.from_numpy(window[:-1]), torch.from_numpy(window[1:])


def build_loader(config):
    windows = Windows(config.corpus, config.length, dist.get_rank(), dist.get_world_size())
    return DataLoader(windows, batch_size=config.batch_size, num_workers=1)
