"""An entry point of its own: distributed autograd keeps gradients per context."""

import torch
import torch.distributed.autograd as dist_autograd
from torch import nn
from torch.distributed.optim import DistributedOptimizer
from torch.utils.data import DataLoader, TensorDataset


def train(model, remote_parameters):
    data = TensorDataset(torch.randn(512, 32), torch.randint(10, (512,)))
    loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4)
    optimizer = DistributedOptimizer(torch.optim.SGD, remote_parameters, lr=0.05)
    for images, labels in loader:
        with dist_autograd.context() as context_id:
            loss = nn.functional.cross_entropy(model(images), labels)
            dist_autograd.backward(context_id, [loss])
            optimizer.step(context_id)
