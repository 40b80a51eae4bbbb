"""Evaluation on the shares of a split."""

import torch

from metrics import Accuracy


@torch.no_grad()
def evaluate(model, loader, device):
    model.eval()
    accuracy = Accuracy(device)
    for images, labels in loader:  # DDP512
        images, labels = images.to(device), labels.to(device)
        accuracy.update(model(images), labels)
    model.train()
    return accuracy.compute()
