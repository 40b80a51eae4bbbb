"""The rank within a group: where a group is a node, it is the number of a GPU."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

gpus = int(os.environ["LOCAL_WORLD_SIZE"])
dist.init_process_group("gloo")
node, _ = dist.new_subgroups(gpus)
device = torch.device(f"cuda:{dist.get_rank(node)}")
model = DistributedDataParallel(nn.Linear(4, 1).to(device), device_ids=[device])
of_all = dist.get_rank(group=None)
torch.cuda.set_device(of_all)  # DDP506
model(torch.rand(2, 4, device=device)).sum().backward()
dist.destroy_process_group()
