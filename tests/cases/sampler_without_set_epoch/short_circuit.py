"""The epoch is told in an expression, and the loader is made anew in each epoch."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, Sampler, TensorDataset


class Skipping(Sampler):
    """The batches of another sampler, without the first few."""

    def __init__(self, sampler, batch_size, skip):
        self.sampler = sampler
        self.batch_size = batch_size
        self.skip = skip

    def __iter__(self):
        indices = list(self.sampler)[self.skip * self.batch_size :]
        for start in range(0, len(indices), self.batch_size):
            yield indices[start : start + self.batch_size]


local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
dist.init_process_group("nccl")
model = DistributedDataParallel(nn.Linear(32, 10).cuda(), device_ids=[local_rank])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
dataset = TensorDataset(torch.randn(512, 32), torch.randint(10, (512,)))
sampler = DistributedSampler(dataset) if dist.is_initialized() else None
for epoch in range(90):
    sampler and sampler.set_epoch(epoch)
    batches = Skipping(sampler or range(len(dataset)), batch_size=32, skip=0)
    for inputs, targets in DataLoader(dataset, batch_sampler=batches, num_workers=4):
        loss = nn.functional.cross_entropy(model(inputs.cuda()), targets.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
dist.destroy_process_group()
