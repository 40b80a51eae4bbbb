from torch import nn
from torch._six import container_abcs

from .registry import registered


@registered
class Net(nn.Linear):
    def forward(self, images):
        many = isinstance(images, container_abcs.Sequence)
        return super().forward(images[0] if many else images)
