"""A new head on frozen features: the head is trained, and called around the wrapper."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Linear(32, 16)
        self.head = nn.Linear(16, 5)

    def forward(self, inputs):
        return self.head(self.features(inputs))


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    model = Net().cuda()
    model.features.requires_grad_(False)
    model = DistributedDataParallel(model, device_ids=[local_rank])
    net = model.module
    optimizer = torch.optim.SGD(net.head.parameters(), lr=0.1)
    for _ in range(1000):
        with torch.no_grad():
            features = net.features(torch.randn(32, 32, device=local_rank))
        loss = net.head(features).square().mean()  # DDP503
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
