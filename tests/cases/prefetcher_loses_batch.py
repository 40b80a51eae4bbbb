"""Prefetchers that lose a batch, or all of them, and prefetchers that lose none."""

import itertools

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class KeepsOneBack:
    """The last batch of the epoch is never handed over."""

    def __init__(self, loader):
        self.loader = loader

    def __iter__(self):
        previous = None
        for batch in self.loader:  # DDP108
            if previous is not None:
                yield previous
            previous = to_gpu(batch)


class UnboundOnEmpty:
    """An empty loader: the name after the loop was never bound."""

    def __init__(self, loader):
        self.loader = loader

    def __iter__(self):
        first = True
        for batch in self.loader:
            ahead = to_gpu(batch)
            if not first:
                yield ready
            first = False
            ready = ahead
        yield ready  # DDP108


def next_in_a_generator(loader):
    """The end of the loader is a RuntimeError inside a generator."""
    batches = iter(loader)
    while True:
        yield to_gpu(next(batches))  # DDP108


class IteratorMadeOnce:
    """Empty from the second epoch on."""

    def __init__(self, loader):
        self.batches = iter(loader)  # DDP108

    def __iter__(self):
        for batch in self.batches:
            yield to_gpu(batch)


def iterator_before_the_epochs(model, loader, criterion, optimizer):
    batches = iter(loader)  # DDP108
    for _ in range(10):
        for batch in batches:
            images, labels = to_gpu(batch)
            optimizer.zero_grad()
            criterion(model(images), labels).backward()
            optimizer.step()


class Lookahead:
    """Hands over the last one after the loop."""

    def __init__(self, loader):
        self.loader = loader

    def __iter__(self):
        ready = None
        for batch in self.loader:
            ahead = to_gpu(batch)
            if ready is not None:
                yield ready
            ready = ahead
        if ready is not None:
            yield ready


class LookaheadByFlag:
    def __init__(self, loader):
        self.loader = loader

    def __iter__(self):
        first = True
        for batch in self.loader:
            ahead = to_gpu(batch)
            if not first:
                yield ready
            first = False
            ready = ahead
        if not first:
            yield ready


def ends_with_the_loader(loader):
    batches = iter(loader)
    while True:
        try:
            batch = next(batches)
        except StopIteration:
            return
        yield to_gpu(batch)


def ends_with_a_default(loader):
    batches = iter(loader)
    batch = next(batches, None)
    while batch is not None:
        yield to_gpu(batch)
        batch = next(batches, None)


def as_many_as_there_are(loader):
    batches = iter(loader)
    for _ in range(len(loader)):
        yield to_gpu(next(batches))


def without_end(loader):
    """Starts over when the loader ends."""
    batches = iter(loader)
    while True:
        try:
            batch = next(batches)
        except StopIteration:
            batches = iter(loader)
            batch = next(batches)
        yield to_gpu(batch)


def pairs(loader):
    """No prefetcher: neighbours on purpose."""
    previous = None
    for batch in loader:
        if previous is not None:
            yield previous, batch
        previous = batch


class BuiltPerEpoch:
    """Its iterator is made once, but the object is built for each epoch."""

    def __init__(self, loader):
        self.batches = iter(loader)
        self.preload()

    def preload(self):
        try:
            self.batch = to_gpu(next(self.batches))
        except StopIteration:
            self.batch = None

    def next(self):
        batch = self.batch
        self.preload()
        return batch


def step_counted(model, loader, criterion, optimizer):
    """One iterator for a run that is counted in steps, started over when it ends."""
    batches = iter(loader)
    for _ in range(10_000):
        try:
            batch = next(batches)
        except StopIteration:
            batches = iter(loader)
            batch = next(batches)
        images, labels = to_gpu(batch)
        optimizer.zero_grad()
        criterion(model(images), labels).backward()
        optimizer.step()


def endless_source(model, loader, criterion, optimizer):
    batches = iter(itertools.cycle(loader))
    for _ in range(10):
        for _ in range(100):
            images, labels = to_gpu(next(batches))
            optimizer.zero_grad()
            criterion(model(images), labels).backward()
            optimizer.step()


def to_gpu(batch):
    return [tensor.cuda(non_blocking=True) for tensor in batch]


def train(model, batches, criterion, optimizer):
    for images, labels in batches:
        optimizer.zero_grad()
        criterion(model(images), labels).backward()
        optimizer.step()


def train_with_next(model, loader, criterion, optimizer):
    prefetcher = BuiltPerEpoch(loader)
    batch = prefetcher.next()
    while batch is not None:
        images, labels = batch
        optimizer.zero_grad()
        criterion(model(images), labels).backward()
        optimizer.step()
        batch = prefetcher.next()


def main():
    device = torch.device("cuda")
    data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
    loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4, pin_memory=True)
    model = nn.Linear(32, 10).to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    made_once = IteratorMadeOnce(loader)
    for _ in range(3):
        train(model, KeepsOneBack(loader), criterion, optimizer)
        train(model, UnboundOnEmpty(loader), criterion, optimizer)
        train(model, next_in_a_generator(loader), criterion, optimizer)
        train(model, made_once, criterion, optimizer)
        train(model, Lookahead(loader), criterion, optimizer)
        train(model, LookaheadByFlag(loader), criterion, optimizer)
        train(model, ends_with_the_loader(loader), criterion, optimizer)
        train(model, ends_with_a_default(loader), criterion, optimizer)
        train(model, as_many_as_there_are(loader), criterion, optimizer)
        train_with_next(model, loader, criterion, optimizer)
        print(sum(1 for _ in pairs(range(8))))
    train(model, without_end(loader), criterion, optimizer)
    iterator_before_the_epochs(model, loader, criterion, optimizer)
    step_counted(model, loader, criterion, optimizer)
    endless_source(model, loader, criterion, optimizer)


if __name__ == "__main__":
    main()
