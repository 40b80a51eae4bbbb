"""Uses the step of the base class."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from brain import Brain


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    model = DistributedDataParallel(nn.Linear(32, 10).cuda(), device_ids=[local_rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batches = [torch.randn(32, 32, device=local_rank) for _ in range(100)]
    Brain(model, optimizer, window=4).fit(batches)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
