"""A sampler of our own that shuffles anew in every pass."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Sampler, TensorDataset


class EndlessShuffle(Sampler):
    def __init__(self, size, seed):
        self.size = size
        self.seed = seed

    def __iter__(self):
        generator = torch.Generator().manual_seed(self.seed)
        while True:
            order = torch.randperm(self.size, generator=generator).tolist()
            yield from order[dist.get_rank() :: dist.get_world_size()]


local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
dist.init_process_group("nccl")
model = DistributedDataParallel(nn.Linear(32, 10).cuda(), device_ids=[local_rank])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
dataset = TensorDataset(torch.randn(512, 32), torch.randint(10, (512,)))
sampler = EndlessShuffle(len(dataset), seed=0)
loader = DataLoader(dataset, batch_size=32, sampler=sampler, num_workers=4)
for epoch in range(90):
    for _, (inputs, targets) in zip(range(100), loader):
        loss = nn.functional.cross_entropy(model(inputs.cuda()), targets.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
dist.destroy_process_group()
