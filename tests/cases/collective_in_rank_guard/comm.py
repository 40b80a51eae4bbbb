"""What the programs of this folder send."""

import torch
import torch.distributed as dist


def get_rank():
    return dist.get_rank() if dist.is_initialized() else 0


def is_main_process():
    return get_rank() == 0


def reduce_dict(values):
    names = sorted(values)
    stacked = torch.stack([values[name] for name in names])
    dist.all_reduce(stacked)
    return dict(zip(names, stacked / dist.get_world_size()))


def gather(value, destination=0):
    """Both arms call it, as it wants to be called."""
    if dist.get_rank() == destination:
        parts = [torch.empty_like(value) for _ in range(dist.get_world_size())]
        dist.gather(value, parts, dst=destination)
        return parts
    dist.gather(value, dst=destination)
    return []
