"""What is cached may be known by now: the call need not run the function."""

import functools

import torch.distributed as dist

dist.init_process_group("gloo")


@functools.cache
def score(point):
    dist.barrier()
    return point * 2


def fresh(point):
    dist.barrier()
    return point * 2


best = min(range(4), key=score)
if dist.get_rank() == 0:
    print(score(best))
    print(fresh(best))  # DDP501
dist.destroy_process_group()
