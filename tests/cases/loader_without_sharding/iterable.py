"""A dataset that takes every N-th sample by itself."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Stream(IterableDataset):
    def __init__(self, size):
        self.size = size

    def __iter__(self):
        worker = get_worker_info()
        workers = 1 if worker is None else worker.num_workers
        number = 0 if worker is None else worker.id
        shards = dist.get_world_size() * workers
        for index in range(dist.get_rank() * workers + number, self.size, shards):
            yield torch.full((32,), float(index)), index % 10


local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
dist.init_process_group("nccl")
model = DistributedDataParallel(nn.Linear(32, 10).cuda(), device_ids=[local_rank])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(Stream(100_000), batch_size=32, num_workers=4)
for inputs, targets in loader:
    loss = nn.functional.cross_entropy(model(inputs.cuda()), targets.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
dist.destroy_process_group()
