"""Begins and ends a process of the job."""

import os

import torch
import torch.distributed as dist


def setup():
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")  # DDP508


def cleanup():
    dist.barrier()
    dist.destroy_process_group()
