"""An endless generator starts the loader over and over; a helper makes the sampler."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, RandomSampler, TensorDataset


def make_sampler(dataset, shuffle, distributed):
    if distributed:
        return DistributedSampler(dataset, shuffle=shuffle)
    return RandomSampler(dataset)


def endless(loader):
    while True:  # DDP301
        for batch in loader:
            yield batch


local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
dist.init_process_group("nccl")
model = DistributedDataParallel(nn.Linear(32, 10).cuda(), device_ids=[local_rank])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
dataset = TensorDataset(torch.randn(512, 32), torch.randint(10, (512,)))
sampler = make_sampler(dataset, shuffle=True, distributed=True)
batches = endless(DataLoader(dataset, batch_size=32, sampler=sampler, num_workers=4))
for iteration in range(100_000):
    inputs, targets = next(batches)
    loss = nn.functional.cross_entropy(model(inputs.cuda()), targets.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
dist.destroy_process_group()
