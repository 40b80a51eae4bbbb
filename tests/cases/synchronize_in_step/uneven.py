"""A barrier that fails tells a rank that another one has no data left."""

import datetime
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel


def somebody_is_done(group):
    try:
        dist.monitored_barrier(group=group, timeout=datetime.timedelta(seconds=30))
    except RuntimeError:
        return True
    return False


def main(batches):
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    group = dist.new_group(backend="gloo", timeout=datetime.timedelta(seconds=30))
    model = FullyShardedDataParallel(nn.Linear(64, 8).cuda())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in batches:
        if somebody_is_done(group):
            break
        try:
            dist.barrier(group)
        except RuntimeError:
            break
        loss = model(batch.cuda()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        dist.barrier(group)  # DDP103
    dist.destroy_process_group()
