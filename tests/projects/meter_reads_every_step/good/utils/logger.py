"""Smoothed numbers for the console; tensors stay where they are until a line is printed."""

import time
from collections import defaultdict, deque

import torch


class SmoothedValue:
    def __init__(self, window=20):
        self.values = deque(maxlen=window)
        self.total = 0.0
        self.count = 0

    def update(self, value):
        if isinstance(value, torch.Tensor):
            value = value.detach()
        self.values.append(value)
        self.total = self.total + value
        self.count += 1

    @property
    def recent(self):
        return float(sum(self.values)) / max(len(self.values), 1)

    @property
    def overall(self):
        return float(self.total) / max(self.count, 1)


class MetricLogger:
    def __init__(self, separator="  "):
        self.meters = defaultdict(SmoothedValue)
        self.separator = separator

    def update(self, **metrics):
        for name, value in metrics.items():
            self.meters[name].update(value)

    def log_every(self, iterable, every, header):
        began = time.time()
        for number, item in enumerate(iterable):
            yield item
            if number % every == 0:
                pace = (time.time() - began) / (number + 1)
                print(f"{header} [{number}] {self} {pace:.3f} s/it")

    def __str__(self):
        return self.separator.join(
            f"{name}: {meter.recent:.4f} ({meter.overall:.4f})"
            for name, meter in self.meters.items()
        )
