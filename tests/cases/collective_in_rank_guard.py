"""Collectives under guards, in helpers, after early exits; and guards that keep nobody away."""

import os

import torch
import torch.distributed as dist
from lightning.pytorch.utilities import rank_zero_only
from torch.distributed import all_reduce as reduce_everywhere

rank = int(os.environ["RANK"])
local_rank = int(os.environ["LOCAL_RANK"])
is_main = rank == 0


def is_main_process():
    return not dist.is_initialized() or dist.get_rank() == 0


def synchronize():
    if not dist.is_initialized() or dist.get_world_size() == 1:
        return
    dist.barrier()


def reduce_mean(value):
    value = value.clone()
    dist.all_reduce(value)
    return value / dist.get_world_size()


def log(value):
    """Every caller is guarded, so the sum inside is reached by one rank."""
    print(reduce_mean(value).item())


@rank_zero_only
def report(value):
    dist.broadcast(value, src=0)  # DDP501
    print(value.item())


def early_return(value):
    if rank != 0:
        return None
    print("first rank")
    return reduce_mean(value)  # DDP501


def under_guards(value):
    if rank == 0:
        dist.barrier()  # DDP501
    if local_rank == 0:
        dist.barrier()  # DDP501
    if is_main:
        reduce_everywhere(value)  # DDP501
    if is_main_process() and value.numel() > 1:
        dist.all_gather_object([None] * dist.get_world_size(), 1)  # DDP501
    if not rank:
        value = reduce_mean(value)  # DDP501
    if is_main:
        log(value)  # DDP501
    if rank > 0:
        synchronize()  # DDP501
    if rank == 0:
        print("fine")
    else:
        dist.broadcast(value, src=0)  # DDP501
    mean = reduce_mean(value) if is_main else value  # DDP501
    if rank == 0 or value.numel() > 10_000_000:
        print("a guard that may also let the others in")
    return mean


def everybody(value, values):
    if dist.is_initialized():
        dist.barrier()
    if os.environ.get("DEBUG"):
        dist.barrier()
    if rank != -1:
        dist.all_reduce(value)
    if dist.get_world_size() > 1 and rank >= 0:
        dist.all_reduce(value)
    if dist.get_world_size() == 1:
        synchronize()
    if rank == 0:
        dist.broadcast(value, src=0)
    else:
        dist.broadcast(value, src=0)
    payload = [None]
    if rank == 0:
        payload = [{"seed": 17}]
    dist.broadcast_object_list(payload, src=0)
    if rank == 0:
        dist.gather(value, values, dst=0)
        total = sum(values)
    else:
        dist.gather(value, [], dst=0)
        total = value
    return total, payload


def both_exits(value):
    if rank == 0:
        dist.barrier()
        return value
    dist.barrier()
    return None


def first_rank_first(path):
    """The others wait before, the first one lets them go after."""
    if rank != 0:
        dist.barrier()
    weights = torch.load(path, map_location="cpu")
    if rank == 0:
        dist.barrier()
    return weights


def only_alone(value):
    if dist.get_world_size() > 1:
        return value
    if rank == 0:
        synchronize()
    return value


def within_a_group(value):
    ranks = [0, 1]
    group = dist.new_group(ranks)
    if rank in ranks:
        dist.all_reduce(value, group=group)
    return value


def to_one_other(value):
    if rank == 0:
        dist.send(value, dst=1)
    elif rank == 1:
        dist.recv(value, src=0)
    return value


def file_of_each_rank(value):
    path = f"part_{rank}.pt"
    if not os.path.exists("parts.txt"):
        torch.save(value, path)
    dist.barrier()


def main():
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    value = torch.ones((), device=local_rank)
    values = [torch.empty_like(value) for _ in range(dist.get_world_size())]
    report(value)
    early_return(value)
    under_guards(value)
    everybody(value, values)
    both_exits(value)
    first_rank_first("weights.pt")
    only_alone(value)
    within_a_group(value)
    to_one_other(value)
    file_of_each_rank(value)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
