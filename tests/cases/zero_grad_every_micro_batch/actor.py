from torch import nn


class Actor:
    def __init__(self, model, optimizer, device):
        self.model = model
        self.optimizer = optimizer
        self.device = device

    def forward_backward(self, batch, accumulate):
        images, labels = (tensor.to(self.device, non_blocking=True) for tensor in batch)
        loss = nn.functional.cross_entropy(self.model(images), labels) / accumulate
        self.optimizer.zero_grad()  # DDP205
        loss.backward()

    def optimizer_step(self):
        self.optimizer.step()


class TidyActor(Actor):
    def forward_backward(self, batch, accumulate):
        images, labels = (tensor.to(self.device, non_blocking=True) for tensor in batch)
        loss = nn.functional.cross_entropy(self.model(images), labels) / accumulate
        loss.backward()

    def optimizer_step(self):
        self.optimizer.step()
        self.optimizer.zero_grad()
