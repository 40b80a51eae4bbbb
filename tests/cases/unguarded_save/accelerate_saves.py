"""Under Accelerate: its own save is guarded, torch.save is not."""

import torch
from accelerate import Accelerator
from torch import nn


def main():
    accelerator = Accelerator()
    model = nn.Linear(32, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = accelerator.prepare(model, optimizer)
    for _ in range(1000):
        loss = model(torch.randn(32, 32, device=accelerator.device)).square().mean()
        optimizer.zero_grad()
        accelerator.backward(loss)
        optimizer.step()
    weights = accelerator.unwrap_model(model).state_dict()
    accelerator.save(weights, "accelerator.pt")
    accelerator.save_state("state")
    if accelerator.is_main_process:
        torch.save(weights, "first_rank.pt")
    torch.save(weights, "every_rank.pt")  # DDP401


if __name__ == "__main__":
    main()
