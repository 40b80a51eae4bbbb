"""The rank is handed to a function of another file that takes it for a device."""

import os

import torch
import torch.distributed as dist
from torch import nn

from worker import train


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    train(nn.Linear(32, 10), dist.get_rank())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
