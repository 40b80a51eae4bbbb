"""Keeps the plain model beside the wrapper and hands over both."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from fit import fit


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    model = nn.Linear(32, 10).cuda()
    model_train = DistributedDataParallel(model, device_ids=[local_rank])
    optimizer = torch.optim.SGD(model_train.parameters(), lr=0.1)
    fit(model, model_train, optimizer, local_rank)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
