"""A helper that nobody here calls makes the group: who calls it may end it."""

import os

import torch
import torch.distributed as dist


def set_up(arguments):
    if "RANK" not in os.environ:
        arguments.distributed = False
        return
    arguments.distributed = True
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    dist.barrier()


def work(model, batches):
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")  # DDP508
    for batch in batches:
        dist.all_reduce(model(batch))
