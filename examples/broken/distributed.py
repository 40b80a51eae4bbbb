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


def reduce_mean(value: float, device: torch.device) -> float:
    """The mean of a number over all processes."""
    tensor = torch.tensor(value, device=device)
    dist.all_reduce(tensor)
    return tensor.item() / dist.get_world_size()


def shutdown() -> None:
    gc.collect()  # wrapped models first: gloo may abort if one outlives the group
    dist.destroy_process_group()
