"""One model of two in nn.DataParallel; the other is prepared, so there are several ranks."""

import torch
from accelerate import Accelerator
from torch import nn

accelerator = Accelerator()


def main():
    aside = nn.DataParallel(nn.Linear(32, 10).to(accelerator.device))  # DDP510
    model = nn.Linear(32, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = accelerator.prepare(model, optimizer)
    for _ in range(1000):
        batch = torch.randn(32, 32, device=accelerator.device)
        loss = (model(batch) + aside(batch)).square().mean()
        optimizer.zero_grad()
        accelerator.backward(loss)
        optimizer.step()
    torch.save(accelerator.unwrap_model(model).state_dict(), "last.pth")  # DDP401


if __name__ == "__main__":
    main()
