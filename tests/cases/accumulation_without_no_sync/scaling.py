"""Backward and step behind one call; the caller says when to step."""

import torch
from torch import nn


class LossScaler:
    def __init__(self):
        self.scaler = torch.amp.GradScaler("cuda")

    def __call__(self, loss, optimizer, parameters, update):
        self.scaler.scale(loss).backward()
        if update:
            self.scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(parameters, 1.0)
            self.scaler.step(optimizer)
            self.scaler.update()
