"""A hook that Accelerate calls in whichever process saves its state."""

import torch
from accelerate import Accelerator
from torch import nn


def main():
    accelerator = Accelerator()
    model = nn.Linear(32, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def save_beside(models, weights, folder):
        torch.save(models[0].state_dict(), f"{folder}/plain.pt")

    accelerator.register_save_state_pre_hook(save_beside)
    model, optimizer = accelerator.prepare(model, optimizer)
    for _ in range(1000):
        loss = model(torch.randn(32, 32, device=accelerator.device)).square().mean()
        optimizer.zero_grad()
        accelerator.backward(loss)
        optimizer.step()
    accelerator.save_state("state")


if __name__ == "__main__":
    main()
