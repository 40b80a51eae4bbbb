"""Batches copied on a side stream: handed over too early, or their memory reused too early."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class NeverWaits:
    """The consumer's kernels may run before the copy has arrived."""

    def __init__(self, loader):
        self.loader = loader
        self.stream = torch.cuda.Stream()

    def __iter__(self):
        self.batches = iter(self.loader)
        self.preload()
        return self

    def preload(self):
        try:
            images, labels = next(self.batches)
        except StopIteration:
            self.images = None
            self.labels = None
            return
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            self.images = images.cuda(non_blocking=True)
            self.labels = labels.cuda(non_blocking=True)

    def __next__(self):
        images, labels = self.images, self.labels
        if images is None:
            raise StopIteration
        self.preload()
        return images, labels  # DDP106


class WaitsBeforeTheCopy:
    """Waits first and copies then: what it waited for is not what it hands over."""

    def __init__(self, loader, device):
        self.loader = loader
        self.device = device
        self.stream = torch.cuda.Stream()

    def __iter__(self):
        self.batches = iter(self.loader)
        return self

    def fetch(self):
        images, labels = next(self.batches)
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            self.images = images.to(self.device, non_blocking=True)
            self.labels = labels.to(self.device, non_blocking=True)

    def __next__(self):
        torch.cuda.current_stream().wait_stream(self.stream)
        self.fetch()
        images, labels = self.images, self.labels
        return images, labels  # DDP106


class NothingKeepsTheMemory:
    """Waits, but a batch that is let go may be overwritten while kernels still read it."""

    def __init__(self, loader):
        self.loader = loader
        self.stream = torch.cuda.Stream()

    def __iter__(self):
        self.batches = iter(self.loader)
        self.preload()
        return self

    def preload(self):
        try:
            images, labels = next(self.batches)
        except StopIteration:
            self.images = None
            self.labels = None
            return
        with torch.cuda.stream(self.stream):  # DDP106
            self.images = images.cuda(non_blocking=True)
            self.labels = labels.cuda(non_blocking=True)

    def __next__(self):
        torch.cuda.current_stream().wait_stream(self.stream)
        images, labels = self.images, self.labels
        if images is None:
            raise StopIteration
        self.preload()
        return images, labels


class AssignsNone(NothingKeepsTheMemory):
    """`record_stream` works in place and returns nothing."""

    def preload(self):
        try:
            images, labels = next(self.batches)
        except StopIteration:
            self.images = None
            self.labels = None
            return
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            self.images = images.cuda(non_blocking=True)
            self.labels = labels.cuda(non_blocking=True)

    def __next__(self):
        torch.cuda.current_stream().wait_stream(self.stream)
        images, labels = self.images, self.labels
        if images is None:
            raise StopIteration
        images = images.record_stream(torch.cuda.current_stream())  # DDP106
        self.preload()
        return images, labels


class Generator:
    """The same lack in a generator that looks one batch ahead."""

    def __init__(self, loader):
        self.loader = loader
        self.stream = torch.cuda.Stream()

    def __iter__(self):
        ready = None
        for images, labels in self.loader:
            with torch.cuda.stream(self.stream):  # DDP106
                images = images.cuda(non_blocking=True)
                labels = labels.cuda(non_blocking=True)
            if ready is not None:
                yield ready
            torch.cuda.current_stream().wait_stream(self.stream)
            ready = images, labels
        if ready is not None:
            yield ready


class RecordsTheStream:
    def __init__(self, loader):
        self.loader = loader
        self.stream = torch.cuda.Stream()

    def __iter__(self):
        self.batches = iter(self.loader)
        self.preload()
        return self

    def preload(self):
        try:
            images, labels = next(self.batches)
        except StopIteration:
            self.images = None
            self.labels = None
            return
        with torch.cuda.stream(self.stream):
            self.images = images.cuda(non_blocking=True)
            self.labels = labels.cuda(non_blocking=True)

    def __next__(self):
        torch.cuda.current_stream().wait_stream(self.stream)
        images, labels = self.images, self.labels
        if images is None:
            raise StopIteration
        images.record_stream(torch.cuda.current_stream())
        labels.record_stream(torch.cuda.current_stream())
        self.preload()
        return images, labels


class RecordsInAHelper(RecordsTheStream):
    """As above, through a function that walks nested batches."""

    def __next__(self):
        torch.cuda.current_stream().wait_stream(self.stream)
        images, labels = self.images, self.labels
        if images is None:
            raise StopIteration
        in_use([images, labels], torch.cuda.current_stream())
        self.preload()
        return images, labels


def in_use(batch, stream):
    for tensor in batch:
        if tensor is not None:
            tensor.record_stream(stream)


class WaitsForTheConsumer:
    """The reverse wait: the side stream copies when the consumer has read the last batch."""

    def __init__(self, loader):
        self.loader = loader
        self.stream = torch.cuda.Stream()

    def __iter__(self):
        ready = None
        for images, labels in self.loader:
            self.stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self.stream):
                images = images.cuda(non_blocking=True)
                labels = labels.cuda(non_blocking=True)
            if ready is not None:
                yield ready
            torch.cuda.current_stream().wait_stream(self.stream)
            ready = images, labels
        if ready is not None:
            yield ready


class WaitsByEvent:
    def __init__(self, loader):
        self.loader = loader
        self.stream = torch.cuda.Stream()
        self.copied = torch.cuda.Event()

    def __iter__(self):
        for images, labels in self.loader:
            self.stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self.stream):
                images = images.cuda(non_blocking=True)
                labels = labels.cuda(non_blocking=True)
                self.copied.record(self.stream)
            torch.cuda.current_stream().wait_event(self.copied)
            yield images, labels


class OptionalStream:
    """Without a GPU there is no stream and nothing to wait for."""

    def __init__(self, loader, device):
        self.loader = loader
        self.device = device
        self.stream = torch.cuda.Stream() if device.type == "cuda" else None

    def __iter__(self):
        if self.stream is None:
            yield from self.loader
            return
        for images, labels in self.loader:
            self.stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self.stream):
                images = images.to(self.device, non_blocking=True)
                labels = labels.to(self.device, non_blocking=True)
            torch.cuda.current_stream().wait_stream(self.stream)
            yield images, labels


def warm_up_on_a_side_stream(model, images):
    """A side stream that copies no batch: warming up before a graph is captured."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            output = model(images)
    torch.cuda.current_stream().wait_stream(side)
    return output


def train(model, batches, criterion, optimizer):
    for images, labels in batches:
        optimizer.zero_grad()
        criterion(model(images), labels).backward()
        optimizer.step()


def main():
    device = torch.device("cuda")
    data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
    loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4, pin_memory=True)
    model = nn.Linear(32, 10).to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    warm_up_on_a_side_stream(model, torch.zeros(64, 32, device=device))
    sources = [
        NeverWaits(loader),
        WaitsBeforeTheCopy(loader, device),
        NothingKeepsTheMemory(loader),
        AssignsNone(loader),
        Generator(loader),
        RecordsTheStream(loader),
        RecordsInAHelper(loader),
        WaitsForTheConsumer(loader),
        WaitsByEvent(loader),
        OptionalStream(loader, device),
    ]
    for _ in range(3):
        for batches in sources:
            train(model, batches, criterion, optimizer)


if __name__ == "__main__":
    main()
