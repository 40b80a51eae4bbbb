"""Begins with that helper and does not end."""

import os

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from process import setup


def main():
    setup()
    local_rank = int(os.environ["LOCAL_RANK"])
    model = DistributedDataParallel(nn.Linear(32, 10).cuda(), device_ids=[local_rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(1000):
        loss = model(torch.randn(32, 32, device=local_rank)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
