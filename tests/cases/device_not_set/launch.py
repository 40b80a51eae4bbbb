"""Sets up a process for other files."""

import os

import torch
import torch.distributed as dist


def start():
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group(backend="nccl")
    return local_rank
