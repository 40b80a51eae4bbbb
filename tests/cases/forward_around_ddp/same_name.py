"""Accelerate wraps the model, and the name is given to the model inside again."""

import torch
from accelerate import Accelerator
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def main():
    accelerator = Accelerator()
    model = nn.Linear(32, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = accelerator.prepare(model, optimizer)
    model = model.module if isinstance(model, DDP) else model
    for _ in range(1000):
        inputs = torch.randn(32, 32, device=accelerator.device)
        loss = model(inputs).square().mean()  # DDP503
        optimizer.zero_grad()
        accelerator.backward(loss)
        optimizer.step()


if __name__ == "__main__":
    main()
