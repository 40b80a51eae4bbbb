"""Every rank evaluates everything: slow perhaps, but the number is right."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
dist.init_process_group("nccl")
model = DistributedDataParallel(nn.Linear(32, 10).cuda(), device_ids=[local_rank])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
dataset = TensorDataset(torch.randn(512, 32), torch.randint(10, (512,)))
sampler = DistributedSampler(dataset)
loader = DataLoader(dataset, batch_size=32, sampler=sampler, num_workers=4)
val_set = TensorDataset(torch.randn(64, 32), torch.randint(10, (64,)))
val_loader = DataLoader(val_set, batch_size=32, shuffle=False, num_workers=4)
for epoch in range(90):
    sampler.set_epoch(epoch)
    for inputs, targets in loader:
        loss = nn.functional.cross_entropy(model(inputs.cuda()), targets.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
model.eval()
correct = torch.zeros((), device=local_rank)
with torch.no_grad():
    for inputs, targets in val_loader:
        correct += (model(inputs.cuda()).argmax(1) == targets.cuda()).sum()
if dist.get_rank() == 0:
    print(f"accuracy {correct.item() / len(val_set):.4f}")
dist.destroy_process_group()
