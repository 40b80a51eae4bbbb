"""The prefix is taken off before the names are compared."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.modules.utils import consume_prefix_in_state_dict_if_present
from torch.nn.parallel import DistributedDataParallel

local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
dist.init_process_group("nccl")
model = DistributedDataParallel(nn.Linear(32, 10).cuda(), device_ids=[local_rank])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
if dist.get_rank() == 0:
    torch.save(model.state_dict(), "last.pt")
dist.barrier()
weights = torch.load("last.pt", map_location="cpu")
consume_prefix_in_state_dict_if_present(weights, "module.")
plain = nn.Linear(32, 12)
plain.load_state_dict(weights, strict=False)
dist.destroy_process_group()
