"""Checkpoints of which every rank writes a part."""

import os

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel

local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
dist.init_process_group("nccl")
model = FullyShardedDataParallel(nn.Linear(32, 10).cuda())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(1000):
    loss = model(torch.randn(32, 32, device=local_rank)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        dcp.save({"model": model.state_dict()}, checkpoint_id=f"step_{step}")
        if dist.get_rank() == 0:
            torch.save({"step": step}, "progress.pt")
dist.destroy_process_group()
