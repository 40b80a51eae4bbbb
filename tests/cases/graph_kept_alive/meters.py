from collections import defaultdict

import torch


class Keeper:
    def __init__(self):
        self.totals = defaultdict(float)

    def update(self, **values):
        for name, value in values.items():
            self.totals[name] += value


class Reader:
    def __init__(self):
        self.values = []

    def update(self, value):
        self.values.append(torch.sum(value).item())  # DDP101
