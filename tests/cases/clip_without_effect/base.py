from torch import nn


class Base:
    def __init__(self, model, optimizer, device):
        self.model = model
        self.optimizer = optimizer
        self.device = device

    def fit(self, loader):
        for images, labels in loader:
            images = images.to(self.device, non_blocking=True)
            labels = labels.to(self.device, non_blocking=True)
            self.optimizer.zero_grad()
            loss = nn.functional.cross_entropy(self.model(images), labels)
            self.clip()
            loss.backward()
            self.optimizer.step()

    def clip(self):
        pass
