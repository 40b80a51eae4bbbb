"""Small helpers around torch.distributed."""

from __future__ import annotations

import gc
import os

import torch
import torch.distributed as dist


def init_distributed() -> torch.device:
    """Join the process group that torchrun describes and return this process's device."""
    if torch.cuda.is_available():
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
        dist.init_process_group("nccl", device_id=device)
    else:
        device = torch.device("cpu")
        dist.init_process_group("gloo")
    return device


def is_main_process() -> bool:
    return dist.get_rank() == 0


def shutdown() -> None:
    """Leave the process group.  For the regular end only: after an error others may wait."""
    gc.collect()  # wrapped models first: gloo may abort if one outlives the group
    dist.destroy_process_group()
