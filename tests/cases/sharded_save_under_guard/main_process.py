"""Accelerate saves its state on the main process only."""

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
        if accelerator.is_main_process:
            if step % 100 == 0:
                path = f"checkpoint-{step}"
                accelerator.save_state(path)  # DDP407
    accelerator.wait_for_everyone()
    if accelerator.is_main_process:
        weights = accelerator.get_state_dict(model)  # DDP407
        torch.save(weights, "last.pt")


if __name__ == "__main__":
    main()
