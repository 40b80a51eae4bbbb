"""A wrapper with batch norm runs on one rank: its forward broadcasts the running means."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(32, 16), nn.BatchNorm1d(16), nn.Linear(16, 10))

    def forward(self, inputs):
        return self.layers(inputs)


@torch.no_grad()
def validate(model, loader):
    model.eval()
    scores = [model(inputs.cuda()).argmax(1) for (inputs,) in loader]
    model.train()
    return torch.cat(scores)


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    model = DistributedDataParallel(Net().cuda(), device_ids=[local_rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(torch.randn(64, 32)), batch_size=32, num_workers=2)
    for step in range(1000):
        loss = model(torch.randn(32, 32, device=local_rank)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0 and dist.get_rank() == 0:
            validate(model, loader)  # DDP501
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
