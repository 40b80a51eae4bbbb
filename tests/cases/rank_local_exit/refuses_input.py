"""Input that cannot be used is refused: an error like any other, and no decision of training."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(4)
        self.layer = nn.Linear(4, 10)

    def forward(self, boxes):
        boxes = self.norm(boxes)
        assert torch.all(boxes < 1e6), "boxes without an end"  # DDP102
        if (boxes[:, 2:] <= boxes[:, :2]).any():  # DDP102
            raise ValueError("boxes without an area")
        return self.layer(boxes).square().mean()


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    model = DistributedDataParallel(Detector().cuda(), device_ids=[local_rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    dataset = TensorDataset(torch.rand(512, 4))
    sampler = DistributedSampler(dataset, drop_last=True)
    loader = DataLoader(dataset, batch_size=32, sampler=sampler, num_workers=4)
    for (boxes,) in loader:
        loss = model(boxes.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
