"""All predictions are gathered, those of the padding too."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
dist.init_process_group("nccl")
model = nn.Linear(32, 10).cuda().eval()
val_set = TensorDataset(torch.randn(101, 32), torch.randint(10, (101,)))
sampler = DistributedSampler(val_set, shuffle=False)  # DDP305
loader = DataLoader(val_set, batch_size=32, sampler=sampler, num_workers=4)
predictions = []
with torch.no_grad():
    for inputs, _ in loader:
        local = model(inputs.cuda()).argmax(1)
        parts = [torch.empty_like(local) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, local)
        predictions.append(torch.cat(parts))
share = (torch.cat(predictions) == 3).float().mean()
if dist.get_rank() == 0:
    print(f"share of class 3: {share.item():.4f}")
dist.destroy_process_group()
