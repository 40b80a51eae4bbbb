from contextlib import contextmanager

import torch.distributed as dist


def average(value):
    value = value.clone()
    dist.all_reduce(value)
    return value / dist.get_world_size()


def wait_for_all():
    if dist.is_initialized() and dist.get_world_size() > 1:
        dist.barrier()  # DDP103


@contextmanager
def wait_for_rank_zero(rank):
    """The others wait until rank 0 has prepared the data."""
    if rank != 0:
        dist.barrier()
    yield
    if rank == 0:
        dist.barrier()
