"""The sampler drops what does not divide, and every rank evaluates the few that remain."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, Subset, TensorDataset

local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
dist.init_process_group("nccl")
model = nn.Linear(32, 10).cuda().eval()
val_set = TensorDataset(torch.randn(101, 32), torch.randint(10, (101,)))
world_size = dist.get_world_size()
sampler = DistributedSampler(val_set, shuffle=False, drop_last=True)
loader = DataLoader(val_set, batch_size=32, sampler=sampler, num_workers=4)
correct = torch.zeros((), device=local_rank)
with torch.no_grad():
    for inputs, targets in loader:
        correct += (model(inputs.cuda()).argmax(1) == targets.cuda()).sum()
dist.all_reduce(correct)
rest = Subset(val_set, range(len(sampler) * world_size, len(val_set)))
rest_loader = DataLoader(rest, batch_size=32, shuffle=False, num_workers=4)
with torch.no_grad():
    for inputs, targets in rest_loader:
        correct += (model(inputs.cuda()).argmax(1) == targets.cuda()).sum()
if dist.get_rank() == 0:
    print(f"accuracy {correct.item() / len(val_set):.4f}")
dist.destroy_process_group()
