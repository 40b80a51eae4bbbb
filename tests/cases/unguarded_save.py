"""Saves in one program: which of them every rank makes, and which are guarded somehow."""

import io
import os
import pickle

import torch
import torch.distributed as dist
from safetensors.torch import save_file
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def is_main_process():
    return not dist.is_initialized() or dist.get_rank() == 0


def save_on_master(state, path):
    if is_main_process():
        torch.save(state, path)


def main_process_only(function):
    def run(*args, **kwargs):
        return function(*args, **kwargs) if is_main_process() else None

    return run


@main_process_only
def save_decorated(state, path):
    torch.save(state, path)


def save_early_return(state, path):
    if dist.get_rank() != 0:
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    torch.save(state, path)


def save_helper(state, path):
    """Called under a guard everywhere."""
    torch.save(state, path)


def save_anywhere(state, path):
    """Called under a guard once, and once not."""
    torch.save(state, path)  # DDP401


class Checkpoints:
    def __init__(self, folder):
        self.folder = folder
        self.is_main = dist.get_rank() == 0

    def save(self, state, name):
        if self.is_main:
            torch.save(state, os.path.join(self.folder, name))

    def save_all(self, state, name):
        torch.save(state, os.path.join(self.folder, name))  # DDP401


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    model = DistributedDataParallel(nn.Linear(32, 10).cuda(), device_ids=[local_rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    rank = dist.get_rank()
    for _ in range(1000):
        loss = model(torch.randn(32, 32, device=local_rank)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    state = model.module.state_dict()
    torch.save(state, "plain.pt")  # DDP401
    torch.save({"model": state, "optimizer": optimizer.state_dict()}, "pair.pt")  # DDP401
    save_file(state, "weights.safetensors")  # DDP401
    with open("pickled.pkl", "wb") as file:
        pickle.dump(state, file)  # DDP401
    if rank == 0:
        torch.save(state, "guarded.pt")
        save_helper(state, "helper.pt")
        save_anywhere(state, "anywhere.pt")
    save_anywhere(state, "anywhere.pt")
    if not rank:
        torch.save(state, "not_rank.pt")
    if rank > 0:
        pass
    else:
        torch.save(state, "other_arm.pt")
    main_process = rank == 0
    if main_process:
        save_helper(state, "flag.pt")
    if 1000 % 100 == 0 and is_main_process():
        torch.save(state, "two_conditions.pt")
    save_on_master(state, "master.pt")
    save_decorated(state, "decorated.pt")
    save_early_return(state, "out/early.pt")
    checkpoints = Checkpoints("out")
    checkpoints.save(state, "attribute.pt")
    checkpoints.save_all(state, "all.pt")
    torch.save(state, f"shard_{rank}.pt")
    torch.save(state, "shard" + str(dist.get_rank()) + ".pt")
    shard = os.path.join("out", "rank%d.pt" % rank)
    torch.save(state, shard)
    torch.save(state, io.BytesIO())
    if dist.get_world_size() == 1:
        torch.save(state, "alone.pt")
    if rank != -1:
        torch.save(state, "distributed.pt")  # DDP401
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
