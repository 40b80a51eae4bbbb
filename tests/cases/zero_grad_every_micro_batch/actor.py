import torch
from torch import nn


def clip(parameters, limit):
    """Gathers gradients to measure them, once per window: nothing is kept from a micro-batch."""
    gradients = []
    for parameter in parameters:
        gradients.append(parameter.grad)
    torch._foreach_mul_(gradients, limit / torch.nn.utils.get_total_norm(gradients))


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
        clip(self.model.parameters(), 1.0)
        self.optimizer.step()


class TidyActor(Actor):
    def forward_backward(self, batch, accumulate):
        images, labels = (tensor.to(self.device, non_blocking=True) for tensor in batch)
        loss = nn.functional.cross_entropy(self.model(images), labels) / accumulate
        loss.backward()

    def optimizer_step(self):
        self.optimizer.step()
        self.optimizer.zero_grad()
