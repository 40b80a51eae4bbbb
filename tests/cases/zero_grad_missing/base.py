from torch import nn


class Base:
    def __init__(self, model, optimizer, device):
        self.model = model
        self.optimizer = optimizer
        self.device = device
        self.steps = 0

    def step(self, images, labels):
        images = images.to(self.device, non_blocking=True)
        labels = labels.to(self.device, non_blocking=True)
        self.before_step()
        nn.functional.cross_entropy(self.model(images), labels).backward()
        self.optimizer.step()

    def before_step(self):
        self.steps += 1

    def clear(self):
        self.model.zero_grad(set_to_none=True)
