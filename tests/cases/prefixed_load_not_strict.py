"""A checkpoint with the prefix, loaded without strictness in several ways."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def save(state, path):
    if dist.get_rank() == 0:
        torch.save(state, path)
    dist.barrier()


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    model = DistributedDataParallel(nn.Linear(32, 10).cuda(), device_ids=[local_rank])
    save(model.state_dict(), "wrapped.pt")  # DDP403
    save({"net": model.state_dict(), "epoch": 3}, "dictionary.pt")  # DDP403
    save(model.module.state_dict(), "plain.pt")

    plain = nn.Linear(32, 10)
    weights = torch.load("wrapped.pt", map_location="cpu")
    plain.load_state_dict(weights, strict=False)  # DDP408
    checkpoint = torch.load("dictionary.pt", map_location="cpu")
    plain.load_state_dict(checkpoint["net"], strict=False)  # DDP408
    plain.load_state_dict(checkpoint["net"], False)  # DDP408

    plain.load_state_dict(torch.load("plain.pt", map_location="cpu"), strict=False)
    pretrained = torch.load("from_elsewhere.pt", map_location="cpu")
    plain.load_state_dict(pretrained, strict=False)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
