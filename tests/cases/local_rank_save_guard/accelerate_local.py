"""The two flags of Accelerate."""

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
    if accelerator.is_local_main_process:
        torch.save(weights, "one_for_each_node.pt")  # DDP402
    if accelerator.is_main_process:
        torch.save(weights, "one.pt")


if __name__ == "__main__":
    main()
