"""The loop in half precision."""

import torch

from .base import Trainer


class MixedPrecisionTrainer(Trainer):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.scaler = torch.amp.GradScaler("cuda")

    def train_step(self, inputs, targets):
        with torch.autocast("cuda", dtype=torch.float16):
            loss = self.loss(inputs, targets)
        self.scaler.scale(loss).backward()
        self.limit_gradients()
        self.scaler.step(self.optimizer)
        self.scaler.update()
