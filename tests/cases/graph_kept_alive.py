"""Losses that keep their graph from step to step, and losses that do not."""

import argparse
import collections

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def summed(model, loader, criterion, optimizer, device):
    total = 0.0
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
        total += loss  # DDP601
    return total / len(loader)


def summed_by_assignment(model, loader, criterion, optimizer, device):
    total = torch.zeros((), device=device)
    average = torch.zeros((), device=device)
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
        total = total + loss * images.size(0)  # DDP601
        average = 0.9 * average + 0.1 * loss  # DDP601
    return total, average


def collected(model, loader, criterion, optimizer, device):
    losses = []
    by_name = collections.defaultdict(list)
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss)  # DDP601
        by_name["loss"].append(loss.mean())  # DDP601
    return torch.stack(losses).mean(), by_name


def added_in_place(model, loader, criterion, optimizer, device):
    stats = {"loss": torch.zeros((), device=device)}
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        stats["loss"].add_(loss)  # DDP601
        loss.backward()
        optimizer.step()
    return stats


class AverageMeter:
    """Keeps what it is given; whether that has a graph is its caller's affair."""

    def __init__(self):
        self.sum = 0.0
        self.count = 0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n


class DetachingMeter:
    def __init__(self):
        self.sum = 0.0

    def update(self, value):
        if isinstance(value, torch.Tensor):
            value = value.detach()
        self.sum += value


def meters(model, loader, criterion, optimizer, device):
    losses, accuracy, detached = AverageMeter(), AverageMeter(), DetachingMeter()
    kept, right = AverageMeter(), AverageMeter()
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        logits = model(images)
        loss = criterion(logits, labels)
        loss.backward()
        optimizer.step()
        kept.update(loss, images.size(0))  # DDP601
        losses.update(loss.detach(), images.size(0))
        detached.update(loss)
        accuracy.update((logits.argmax(1) == labels).float().mean(), images.size(0))
        with torch.no_grad():
            right.update(logits.softmax(1).max())
    return losses, accuracy, detached, kept, right


class Trainer:
    """The sum is an attribute."""

    def __init__(self, model, optimizer, device):
        self.model = model
        self.optimizer = optimizer
        self.device = device
        self.running = 0.0
        self.history = []

    def fit(self, loader, criterion):
        for images, labels in loader:
            self.fit_batch(images, labels, criterion)

    def fit_batch(self, images, labels, criterion):
        images = images.to(self.device, non_blocking=True)
        labels = labels.to(self.device, non_blocking=True)
        self.optimizer.zero_grad()
        loss = criterion(self.model(images), labels)
        loss.backward()
        self.optimizer.step()
        self.running += loss  # DDP601
        self.history.append(loss.detach())
        self.last = loss


def evaluated_with_graph(model, loader, criterion, device):
    """Nothing frees what the forward pass saved: it all stays until the end."""
    model.eval()
    total = 0.0
    for images, labels in loader:  # DDP602
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        total += criterion(model(images), labels)  # DDP601
    model.train()
    return total / len(loader)


@torch.no_grad()
def evaluated(model, loader, criterion, device):
    model.eval()
    total, outputs = 0.0, []
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        logits = model(images)
        outputs.append(logits)
        total += criterion(logits, labels)
    model.train()
    return total / len(loader), torch.cat(outputs)


def without_graph(model, loader, criterion, optimizer, device):
    total, squares, numbers, seen = 0.0, torch.zeros((), device=device), [], 0
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
        value = loss.detach()
        total += value
        total = total + loss.data
        numbers.append(value.float())
        seen += labels.size(0)
        with torch.no_grad():
            squares += loss * loss
    return total, squares, numbers, seen


def read_first(model, loader, criterion, optimizer, device):
    """A number has no graph; that it is read on every step is another matter."""
    total = 0.0
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
        value = loss.item()  # DDP101
        total += value
    return total


def parts_of_one_loss(model, heads, loader, criterion, optimizer, device):
    """Summed within the step and then propagated."""
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        features = model(images)
        loss = 0.0
        parts = []
        for head in heads:
            part = criterion(head(features), labels)
            loss += part
            parts.append(part)
        loss /= len(heads)
        (loss + torch.stack(parts).max()).backward()
        optimizer.step()


def propagated_later(model, loader, criterion, optimizer, device, args):
    """The sum over a window is what the backward runs on."""
    window = 0.0
    for step, (images, labels) in enumerate(loader, start=1):
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        window = window + criterion(model(images), labels) / args.accumulate
        if step % args.accumulate == 0:
            optimizer.zero_grad()
            window.backward()
            optimizer.step()
            window = 0.0


def bounded(model, loader, criterion, optimizer, device, args):
    """Starts anew with every optimizer step: a handful of graphs at most."""
    window = 0.0
    recent = collections.deque(maxlen=20)
    for step, (images, labels) in enumerate(loader, start=1):
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        loss = criterion(model(images), labels) / args.accumulate
        window += loss
        recent.append(loss)
        loss.backward()
        if step % args.accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()
            print(step)
            window = 0.0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--accumulate", type=int, default=4)
    args = parser.parse_args()
    device = torch.device("cuda")
    data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
    loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4, pin_memory=True)
    model = nn.Linear(32, 32).to(device)
    heads = [nn.Linear(32, 10).to(device) for _ in range(3)]
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    trainer = Trainer(model, optimizer, device)
    for _ in range(3):
        summed(model, loader, criterion, optimizer, device)
        summed_by_assignment(model, loader, criterion, optimizer, device)
        collected(model, loader, criterion, optimizer, device)
        added_in_place(model, loader, criterion, optimizer, device)
        meters(model, loader, criterion, optimizer, device)
        trainer.fit(loader, criterion)
        evaluated_with_graph(model, loader, criterion, device)
        evaluated(model, loader, criterion, device)
        without_graph(model, loader, criterion, optimizer, device)
        read_first(model, loader, criterion, optimizer, device)
        parts_of_one_loss(model, heads, loader, criterion, optimizer, device)
        propagated_later(model, loader, criterion, optimizer, device, args)
        bounded(model, loader, criterion, optimizer, device, args)


if __name__ == "__main__":
    main()
