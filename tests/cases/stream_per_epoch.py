"""A new side stream for every epoch, and one for all of them."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class StreamInIter:
    """`__iter__` runs once per epoch."""

    def __init__(self, loader):
        self.loader = loader

    def __iter__(self):
        stream = torch.cuda.Stream()  # DDP107
        for images, labels in self.loader:
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                images = images.cuda(non_blocking=True)
                labels = labels.cuda(non_blocking=True)
            torch.cuda.current_stream().wait_stream(stream)
            yield images, labels


class StreamInInit:
    """Built anew for each epoch below."""

    def __init__(self, loader):
        self.loader = loader
        self.stream = torch.cuda.Stream()  # DDP107

    def __iter__(self):
        for images, labels in self.loader:
            self.stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self.stream):
                images = images.cuda(non_blocking=True)
                labels = labels.cuda(non_blocking=True)
            torch.cuda.current_stream().wait_stream(self.stream)
            yield images, labels


def prefetched(loader):
    stream = torch.cuda.Stream()  # DDP107
    for images, labels in loader:
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            images = images.cuda(non_blocking=True)
            labels = labels.cuda(non_blocking=True)
        torch.cuda.current_stream().wait_stream(stream)
        yield images, labels


class OneStream:
    """Built once: one stream, whatever the number of epochs."""

    def __init__(self, loader):
        self.loader = loader
        self.stream = torch.cuda.Stream()

    def __iter__(self):
        for images, labels in self.loader:
            self.stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self.stream):
                images = images.cuda(non_blocking=True)
                labels = labels.cuda(non_blocking=True)
            torch.cuda.current_stream().wait_stream(self.stream)
            yield images, labels


def prefetched_on(loader, stream):
    consumer = torch.cuda.current_stream()
    for images, labels in loader:
        stream.wait_stream(consumer)
        with torch.cuda.stream(stream):
            images = images.cuda(non_blocking=True)
            labels = labels.cuda(non_blocking=True)
        consumer.wait_stream(stream)
        yield images, labels


class LazyStream(OneStream):
    """Made when first needed and kept."""

    def __init__(self, loader):
        self.loader = loader
        self.stream = None

    def __iter__(self):
        if self.stream is None:
            self.stream = torch.cuda.Stream()
        yield from super().__iter__()


def train(model, batches, criterion, optimizer):
    for images, labels in batches:
        optimizer.zero_grad()
        criterion(model(images), labels).backward()
        optimizer.step()


def train_epoch(model, loader, criterion, optimizer):
    batches = StreamInInit(loader)
    train(model, batches, criterion, optimizer)


def capture(model, images):
    """Once, before the training."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        model(images)
    torch.cuda.current_stream().wait_stream(side)


def main():
    device = torch.device("cuda")
    data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
    loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4, pin_memory=True)
    model = nn.Linear(32, 10).to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    capture(model, torch.zeros(64, 32, device=device))
    in_iter = StreamInIter(loader)
    once = OneStream(loader)
    lazy = LazyStream(loader)
    shared = torch.cuda.Stream()
    for _ in range(3):
        train(model, in_iter, criterion, optimizer)
        train_epoch(model, loader, criterion, optimizer)
        train(model, prefetched(loader), criterion, optimizer)
        train(model, once, criterion, optimizer)
        train(model, lazy, criterion, optimizer)
        train(model, prefetched_on(loader, shared), criterion, optimizer)


if __name__ == "__main__":
    main()
