"""Needs a PyTorch that is older than the new names."""

import torch
from torch._six import inf


def step(loss, optimizer, scaler=None):
    scaler = scaler or torch.cuda.amp.GradScaler()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    return scaler.get_scale() < inf
