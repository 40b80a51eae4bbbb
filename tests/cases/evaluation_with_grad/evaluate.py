import torch
from torch import nn


def accuracy(model, loader, device):
    correct, seen = 0, 0
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        correct += (model(images).argmax(1) == labels).sum().item()
        seen += labels.size(0)
    return correct / seen


def mean_loss(model, loader, device):
    total = torch.zeros((), device=device)
    for images, labels in loader:  # DDP602
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        total += nn.functional.cross_entropy(model(images), labels).detach()
    return total.item() / len(loader)
