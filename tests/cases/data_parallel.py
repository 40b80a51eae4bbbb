"""DataParallel around a model and around a part of one; and a class of the same name."""

import torch
from torch import nn


class DataParallel(nn.Module):
    """Of our own, and something else."""

    def __init__(self, module):
        super().__init__()
        self.inner = module

    def forward(self, inputs):
        return self.inner(inputs)


def step(model, optimizer):
    loss = model(torch.randn(256, 32, device="cuda")).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def main():
    model = nn.Sequential(nn.Linear(32, 16), nn.Linear(16, 10)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if torch.cuda.device_count() > 1:
        model[0] = nn.DataParallel(model[0])  # DDP510
    whole = torch.nn.DataParallel(model, device_ids=[0, 1])  # DDP510
    own = DataParallel(model)
    for _ in range(1000):
        step(whole, optimizer)
        step(own, optimizer)
    if isinstance(whole, nn.DataParallel):
        whole = whole.module
    torch.save(whole.state_dict(), "last.pt")


if __name__ == "__main__":
    main()
