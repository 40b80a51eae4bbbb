"""The rank within the node is told to the group as the rank: there is no second node."""

import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

parser = argparse.ArgumentParser()
parser.add_argument("--local_rank", type=int, default=0)
parser.add_argument("--gpus", type=int, default=2)
args = parser.parse_args()
torch.cuda.set_device(args.local_rank)
dist.init_process_group(
    "nccl", init_method="tcp://localhost:26000", rank=args.local_rank, world_size=args.gpus
)
model = DistributedDataParallel(nn.Linear(32, 10).cuda(), device_ids=[args.local_rank])
for _ in range(100):
    model(torch.randn(4, 32).cuda()).sum().backward()
if args.local_rank == 0:
    torch.save(model.module.state_dict(), "model.pt")
dist.destroy_process_group()
