"""Processes and devices."""

import os

import torch
import torch.distributed as dist


def start():
    """Join the group and give (rank, device)."""
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    return dist.get_rank(), device


def stop():
    dist.destroy_process_group()
