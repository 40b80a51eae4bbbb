"""Three ways to keep a running mean; one of them reads its input on every call."""

import torch


class SmoothedValue:
    def __init__(self):
        self.total = 0.0
        self.count = 0

    def update(self, value, n=1):
        self.total += value * n
        self.count += n

    @property
    def mean(self):
        return self.total / max(self.count, 1)


class MetricLogger:
    def __init__(self):
        self.meters = {}
        self.snapshots = []

    def add(self, name, meter):
        self.meters[name] = meter

    def update(self, **values):
        for name, value in values.items():
            if isinstance(value, torch.Tensor):
                value = value.item()  # DDP101
            self.meters.setdefault(name, SmoothedValue()).update(value)

    def means(self):
        return {name: meter.mean for name, meter in self.meters.items()}

    def log_every(self, iterable, every):
        for index, item in enumerate(iterable):
            yield item
            if index % every == 0:
                self.snapshots.append(self.means())


class BufferedMeter:
    """Keeps tensors and reads them together, once in `every` calls."""

    def __init__(self, every):
        self.every = every
        self.values = []

    def update(self, value):
        self.values.append(value)
        if len(self.values) > self.every:
            self.values.pop(0)

    def mean(self):
        return torch.stack(self.values).mean().item()
