"""One rank saves and all load: with a barrier between, without, and elsewhere."""

import os

import torch
import torch.distributed as dist
from torch import nn


def save_on_master(state, path):
    if dist.get_rank() == 0:
        torch.save(state, path)


def load(model, path):
    model.load_state_dict(torch.load(path, map_location="cpu"))  # DDP405


def synchronize():
    if dist.is_initialized() and dist.get_world_size() > 1:
        dist.barrier()


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    model = nn.Linear(32, 10).cuda()
    if dist.get_rank() == 0:
        torch.save(model.state_dict(), "first.pt")
    model.load_state_dict(torch.load("first.pt", map_location="cpu"))  # DDP405

    path = os.path.join("out", "second.pt")
    save_on_master(model.state_dict(), path)
    load(model, path)

    save_on_master(model.state_dict(), "third.pt")
    dist.barrier()
    model.load_state_dict(torch.load("third.pt", map_location="cpu"))

    save_on_master(model.state_dict(), "fourth.pt")
    synchronize()
    model.load_state_dict(torch.load("fourth.pt", map_location="cpu"))

    if dist.get_rank() == 0:
        torch.save(model.state_dict(), "fifth.pt")
        model.load_state_dict(torch.load("fifth.pt", map_location="cpu"))

    save_on_master(model.state_dict(), "sixth.pt")
    model.load_state_dict(torch.load("other.pt", map_location="cpu"))

    save_on_master(model.state_dict(), "seventh.pt")
    total = torch.ones((), device=local_rank)
    dist.all_reduce(total)
    model.load_state_dict(torch.load("seventh.pt", map_location="cpu"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
