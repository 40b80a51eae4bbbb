import torch
from torch import nn


class HalfTrainer:
    def __init__(self, model, optimizer, device):
        self.model = model
        self.optimizer = optimizer
        self.device = device
        self.scaler = torch.amp.GradScaler("cuda")

    def train_step(self, images, labels):
        images = images.to(self.device, non_blocking=True)
        labels = labels.to(self.device, non_blocking=True)
        with torch.amp.autocast("cuda"):
            loss = nn.functional.cross_entropy(self.model(images), labels)
        self.optimizer.zero_grad()
        self.scaler.scale(loss).backward()
        take_step(self.optimizer)


class WholeTrainer(HalfTrainer):
    def train_step(self, images, labels):
        images = images.to(self.device, non_blocking=True)
        labels = labels.to(self.device, non_blocking=True)
        with torch.amp.autocast("cuda"):
            loss = nn.functional.cross_entropy(self.model(images), labels)
        self.optimizer.zero_grad()
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()


def take_step(optimizer):
    optimizer.step()  # DDP206
