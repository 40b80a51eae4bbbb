"""Accelerate: the loss goes through the unwrapped model."""

import torch
from accelerate import Accelerator
from torch import nn


def main():
    accelerator = Accelerator()
    model = nn.Linear(32, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = accelerator.prepare(model, optimizer)
    for _ in range(1000):
        inputs = torch.randn(32, 32, device=accelerator.device)
        loss = accelerator.unwrap_model(model)(inputs).square().mean()  # DDP503
        optimizer.zero_grad()
        accelerator.backward(loss)
        optimizer.step()
    with torch.no_grad():
        samples = accelerator.unwrap_model(model)(torch.randn(4, 32, device=accelerator.device))
    if accelerator.is_main_process:
        print(samples.mean().item())


if __name__ == "__main__":
    main()
