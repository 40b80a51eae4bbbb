"""What did not match is looked at, and the program stops."""

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
if dist.get_rank() == 0:
    torch.save(model.state_dict(), "last.pt")  # DDP403
dist.barrier()
plain = nn.Linear(32, 10)
result = plain.load_state_dict(torch.load("last.pt", map_location="cpu"), strict=False)
if result.unexpected_keys:
    raise KeyError(result.unexpected_keys)
dist.destroy_process_group()
