"""accumulate() is the no_sync of Accelerate."""

import torch
from accelerate import Accelerator
from torch import nn


def main():
    accelerator = Accelerator(gradient_accumulation_steps=4)
    model = nn.Linear(32, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = accelerator.prepare(model, optimizer)
    for _ in range(1000):
        with accelerator.accumulate(model):
            loss = model(torch.randn(32, 32, device=accelerator.device)).square().mean()
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()


if __name__ == "__main__":
    main()
