"""Local work under a local guard: a download to the own disk, a progress bar."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
dist.init_process_group("nccl")
model = DistributedDataParallel(nn.Linear(32, 10).cuda(), device_ids=[local_rank])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
if local_rank == 0:
    torch.hub.download_url_to_file("https://example.org/data.bin", "/tmp/data.bin")
dist.barrier()
for step in range(1000):
    loss = model(torch.randn(32, 32, device=local_rank)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if local_rank == 0 and step % 100 == 0:
        print(step, loss.item())
dist.destroy_process_group()
