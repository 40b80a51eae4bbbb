"""Features are stored where the index of their sample says: a repeated one overwrites itself."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
dist.init_process_group("nccl")
model = nn.Linear(32, 10).cuda().eval()
numbered = TensorDataset(torch.randn(101, 32), torch.arange(101))
sampler = DistributedSampler(numbered, shuffle=False)
loader = DataLoader(numbered, batch_size=32, sampler=sampler, num_workers=4)
store = torch.zeros(len(numbered), 10).cuda()
count = 0
with torch.no_grad():
    for inputs, indices in loader:
        features = model(inputs.cuda())
        count += len(features)
        every = [torch.empty_like(features) for _ in range(dist.get_world_size())]
        numbers = [torch.empty_like(indices).cuda() for _ in range(dist.get_world_size())]
        dist.all_gather(every, features)
        dist.all_gather(numbers, indices.cuda())
        store.index_copy_(0, torch.cat(numbers), torch.cat(every))
if dist.get_rank() == 0:
    print(f"mean: {store.mean():.4f} of {count}")
dist.destroy_process_group()
