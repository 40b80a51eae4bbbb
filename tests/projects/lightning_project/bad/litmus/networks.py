"""Generator and critic for 28 x 28 images."""

from torch import nn


class Generator(nn.Sequential):
    def __init__(self, code=64):
        super().__init__(nn.Linear(code, 512), nn.ReLU(), nn.Linear(512, 784), nn.Tanh())
        self.code = code


class Critic(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(784, 512), nn.LeakyReLU(0.2), nn.Linear(512, 1))
