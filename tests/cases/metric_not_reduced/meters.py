"""A meter that adds itself over the ranks when it is asked to."""

import torch
import torch.distributed as dist


class Meter:
    def __init__(self):
        self.total = 0.0
        self.count = 0

    def update(self, value, count):
        self.total += value * count
        self.count += count

    def synchronize(self):
        pair = torch.tensor([self.total, self.count], device="cuda")
        dist.all_reduce(pair)
        self.total, self.count = pair.tolist()

    @property
    def average(self):
        return self.total / max(self.count, 1)
