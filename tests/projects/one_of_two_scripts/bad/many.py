"""The script of several processes: all of them save."""

import os

import torch
import torch.distributed as dist
from model import Model
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

if __name__ == "__main__":
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    model = Model({"dist": True})
    data = TensorDataset(torch.randn(64, 8), torch.randint(3, (64,)))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=8, sampler=sampler, num_workers=2)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for x, y in loader:
            model.step(x, y)
        model.save()
    dist.destroy_process_group()
