"""One base class moves the batches, its children say how."""

import torch


class Prefetcher:
    def __init__(self, loader, device):
        self.loader = loader
        self.device = device
        self.stream = torch.cuda.Stream(device)

    def __iter__(self):
        self.batches = iter(self.loader)
        self.preload()
        while self.batch is not None:
            torch.cuda.current_stream().wait_stream(self.stream)
            batch = self.batch
            self.release(batch)
            self.preload()
            yield batch

    def preload(self):
        self.batch = next(self.batches, None)
        if self.batch is None:
            return
        with torch.cuda.stream(self.stream):
            self.batch = [t.to(self.device, non_blocking=True) for t in self.batch]

    def release(self, batch):
        for tensor in batch:
            tensor.record_stream(torch.cuda.current_stream())
