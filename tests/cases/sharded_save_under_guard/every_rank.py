"""Accelerate asks all ranks; what only one does is deleting old checkpoints."""

import shutil

import torch
from accelerate import Accelerator
from torch import nn


def main():
    accelerator = Accelerator()
    model = nn.Linear(32, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = accelerator.prepare(model, optimizer)
    for step in range(1000):
        loss = model(torch.randn(32, 32, device=accelerator.device)).square().mean()
        optimizer.zero_grad()
        accelerator.backward(loss)
        optimizer.step()
        if step % 100 == 0:
            if accelerator.is_main_process and step >= 300:
                shutil.rmtree(f"checkpoint-{step - 300}", ignore_errors=True)
            accelerator.save_state(f"checkpoint-{step}")
    weights = accelerator.get_state_dict(model)
    if accelerator.is_main_process:
        torch.save(weights, "last.pt")


if __name__ == "__main__":
    main()
