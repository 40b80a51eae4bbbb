import torch.distributed as dist


def is_main_process():
    return not dist.is_initialized() or dist.get_rank() == 0


def reduce_mean(value):
    value = value.clone()
    dist.all_reduce(value)
    value /= dist.get_world_size()
    return value
