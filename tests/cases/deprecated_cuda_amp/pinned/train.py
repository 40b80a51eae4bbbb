"""The requirements next to it name a PyTorch that has none of the new names."""

import torch
from torch.cuda.amp import custom_fwd


def step(model, images, labels, criterion, optimizer, scaler):
    optimizer.zero_grad()
    with torch.cuda.amp.autocast():
        loss = criterion(model(images), labels)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()


@custom_fwd
def double(value):
    return 2 * value


def make_scaler():
    return torch.cuda.amp.GradScaler()
