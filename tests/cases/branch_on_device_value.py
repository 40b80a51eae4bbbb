"""Python decides on a device tensor: on every step, and where that is fine."""

import argparse
import math
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def every_way_to_decide(model, loader, criterion, optimizer, device):
    worst = torch.zeros((), device=device)
    skipped = 0
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        loss = criterion(model(images), labels)
        assert torch.isfinite(loss), "the loss is not finite"  # DDP102
        if torch.isnan(loss):  # DDP102
            skipped += 1
        if not torch.isfinite(loss).all():  # DDP102
            print("stopping, the loss is", loss)
            sys.exit(1)
        if math.isnan(loss):  # DDP102
            raise RuntimeError("the loss is nan")
        if loss > 10.0:  # DDP102
            loss = loss * 0.1
        factor = 0.5 if loss > 5.0 else 1.0  # DDP102
        while loss > 100.0:  # DDP102
            loss = loss / 2
        if (labels == 7).any() and skipped < 3:  # DDP102
            factor *= 2
        worst = max(worst, loss.detach())  # DDP102
        optimizer.zero_grad()
        (loss * factor).backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if torch.isfinite(norm):  # DDP102
            optimizer.step()
    return worst


def check_finite(loss):
    if not torch.isfinite(loss):  # DDP102
        raise RuntimeError("the loss is not finite")


class Brain:
    """The check is a method, and the step that calls it another one."""

    def __init__(self, model, optimizer, device):
        self.model = model
        self.optimizer = optimizer
        self.device = device
        self.nonfinite = 0

    def fit(self, loader, criterion):
        for images, labels in loader:
            self.fit_batch(images, labels, criterion)

    def fit_batch(self, images, labels, criterion):
        images = images.to(self.device, non_blocking=True)
        labels = labels.to(self.device, non_blocking=True)
        loss = criterion(self.model(images), labels)
        check_finite(loss)
        self.count_nonfinite(loss)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def count_nonfinite(self, loss):
        if not math.isfinite(loss):  # DDP102
            self.nonfinite += 1


def the_read_is_another_rule(model, loader, criterion, optimizer, device):
    """Reading the number is one finding (DDP101); deciding on the number is none."""
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        loss = criterion(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        value = loss.item()  # DDP101
        if not math.isfinite(value) or value > 1e4:
            sys.exit(1)
        if torch.isnan(loss).item():  # DDP101
            sys.exit(1)


def known_without_asking_the_device(model, loader, criterion, optimizer, device, target=None):
    best = None
    for step, batch in enumerate(loader):
        images, labels = batch
        if labels.max() > 9:
            raise ValueError("label out of range")
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        loss = criterion(model(images), labels)
        if loss is None or target is not None or best is not loss:
            best = loss.detach()
        if loss.dim() > 0:
            loss = loss.mean()
        if images.shape[0] < 64 or images.size(1) != 32 or labels.numel() == 0 or len(images) == 1:
            continue
        if isinstance(loss, torch.Tensor) and loss.requires_grad and loss.is_cuda:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if optimizer.param_groups[0]["lr"] < 1e-6 or step > 10_000:
            break


def gated(model, loader, criterion, optimizer, device, args):
    for step, (images, labels) in enumerate(loader):
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        loss = criterion(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0 and torch.isnan(loss):
            sys.exit(1)
        if step % args.log_every == 0:
            if loss > 10.0:
                print("the loss is large")
        if (step + 1) == len(loader):
            assert torch.isfinite(loss)


def on_the_device(model, loader, criterion, optimizer, device):
    """The same decisions taken by the device."""
    skipped = torch.zeros((), device=device)
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        loss = criterion(model(images), labels)
        finite = torch.isfinite(loss)
        skipped += (~finite).float()
        loss = torch.where(finite, loss, torch.zeros_like(loss))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if skipped > 0:
        print("some losses were not finite")


@torch.no_grad()
def evaluate(model, loader, criterion, device):
    model.eval()
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        if torch.isnan(criterion(model(images), labels)):
            print("nan in the evaluation")
    model.train()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--log-every", type=int, default=100)
    args = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
    loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4, pin_memory=True)
    model = nn.Linear(32, 10).to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        every_way_to_decide(model, loader, criterion, optimizer, device)
        Brain(model, optimizer, device).fit(loader, criterion)
        the_read_is_another_rule(model, loader, criterion, optimizer, device)
        known_without_asking_the_device(model, loader, criterion, optimizer, device)
        gated(model, loader, criterion, optimizer, device, args)
        on_the_device(model, loader, criterion, optimizer, device)
        evaluate(model, loader, criterion, device)


if __name__ == "__main__":
    main()
