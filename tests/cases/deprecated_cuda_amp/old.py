"""Other ways to spell the old names."""

import torch
import torch.cuda.amp as cuda_amp
from torch.cuda import amp


def step(model, images, labels, criterion, optimizer, scaler):
    optimizer.zero_grad()
    with amp.autocast(enabled=True):  # DDP211
        loss = criterion(model(images), labels)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()


def make_scaler():
    return cuda_amp.GradScaler(init_scale=1024.0)  # DDP211


def is_scaler(value):
    return isinstance(value, torch.amp.GradScaler)
