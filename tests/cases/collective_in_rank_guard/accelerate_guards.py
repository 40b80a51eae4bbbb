"""Accelerate: what gathers, waits or prepares on the main process only."""

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
        if accelerator.is_main_process and step % 100 == 0:
            losses = accelerator.gather_for_metrics(loss.detach())  # DDP501
            print(step, losses.mean().item())
        if step % 100 == 0:
            losses = accelerator.gather(loss.detach())
            if accelerator.is_main_process:
                print(step, losses.mean().item())
    if accelerator.is_main_process:
        print("done")
    else:
        accelerator.wait_for_everyone()  # DDP501
    with accelerator.main_process_first():
        weights = torch.load("tables.pt", map_location="cpu")
    accelerator.wait_for_everyone()
    if accelerator.is_main_process:
        torch.save(weights, "copied.pt")


if __name__ == "__main__":
    main()
