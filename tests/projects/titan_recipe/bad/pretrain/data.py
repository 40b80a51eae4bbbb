"""An endless stream of tokens."""

import numpy as np
import torch
from torch.utils.data import DataLoader, IterableDataset


class Windows(IterableDataset):
    def __init__(self, path, length):
        self.path = path
        self.length = length

    def __iter__(self):
        tokens = np.memmap(self.path, dtype=np.uint16, mode="r")
        windows = (len(tokens) - 1) // self.length
        while True:
            for number in range(windows):
                start = number * self.length
                window = tokens[start : start + self.length + 1].astype(np.int64)
                yield torch.from_numpy(window[:-1]), torch.from_numpy(window[1:])


def build_loader(config):
    windows = Windows(config.corpus, config.length)
    return DataLoader(windows, batch_size=config.batch_size, num_workers=1)  # DDP304
