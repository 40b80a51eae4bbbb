"""A ratio that a function of autograd averages over the ranks."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Mean(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value):
        value = value / dist.get_world_size()
        dist.all_reduce(value)
        return value


torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
model = nn.Linear(4, 2).cuda().eval()
data = TensorDataset(torch.randn(104, 4), torch.randint(2, (104,)))
loader = DataLoader(data, batch_size=8, sampler=DistributedSampler(data, drop_last=True))
hits = torch.zeros((), device="cuda")
count = 0
with torch.no_grad():
    for x, y in loader:
        hits += (model(x.cuda()).argmax(1) == y.cuda()).sum()
        count += len(y)
accuracy = Mean.apply(hits / count)
if dist.get_rank() == 0:
    print(accuracy)
dist.destroy_process_group()
