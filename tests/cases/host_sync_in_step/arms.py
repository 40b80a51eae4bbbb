"""Reads in arms that no training step takes: those of evaluations, and what the calls rule out."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def hits(logits, labels, reduction="mean"):
    right = (logits.argmax(1) == labels).float()
    if reduction == "mean":
        return right.mean().item()
    elif reduction == "none":
        return right


def share(logits, labels, reduction="mean"):
    right = (logits.argmax(1) == labels).float()
    if reduction == "mean":
        return right.mean().item()  # DDP101
    return right


def mask(lengths, longest=0):
    longest = longest if longest > 0 else lengths.max().item()
    return torch.arange(longest, device=lengths.device) < lengths.unsqueeze(-1)


class Loss:
    """Its options are the same wherever it is made."""

    def __init__(self, kind, balance):
        self.kind = kind
        self.balance = balance
        self.weight = 1.0

    def __call__(self, logits, labels):
        loss = nn.functional.cross_entropy(logits, labels)
        if self.balance:
            self.weight = 0.9 * self.weight + 0.1 / loss.detach().item()
        if self.kind == "focal":
            self.weight += loss.item()
        if self.kind != "focal":
            self.weight += loss.item()  # DDP101
        return loss


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(32, 10)

    def after(self, scores):
        return (scores.max(dim=1)[0] > 0.5).sum().item()

    def forward(self, images):
        scores = self.layer(images)
        if self.training:
            print(scores.mean().item())  # DDP101
            return scores
        else:
            return self.after(scores)


class Early(Detector):
    def forward(self, images):
        scores = self.layer(images)
        if self.training:
            return scores
        return self.after(scores)


def run(model, loader, criterion, optimizer, learn):
    """One loop for training and evaluation."""
    for images, labels in loader:
        images, labels = images.cuda(), labels.cuda()
        if not learn:
            print(model(images).cpu())
        loss = criterion(model(images), labels)
        if learn:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print(loss.item())  # DDP101
        else:
            print(loss.item())


def main():
    data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
    loader = DataLoader(data, batch_size=64, num_workers=4)
    model = nn.Sequential(Detector(), Early()).cuda()
    detector, early = Detector().cuda(), Early().cuda()
    criterion = Loss("plain", False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    total = torch.zeros((), device="cuda")
    for images, labels in loader:
        images, labels = images.cuda(), labels.cuda()
        count = labels.size(0)
        logits = (detector(images) + early(images)) * mask(labels, 10) * mask(labels, count)
        loss = criterion(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += hits(logits.detach(), labels, reduction="none").sum()
        total += share(logits.detach(), labels)
    run(model, loader, Loss("plain", False), optimizer, True)
    run(model, loader, Loss("plain", False), optimizer, False)


if __name__ == "__main__":
    main()
