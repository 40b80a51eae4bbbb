"""Loads on every rank, on one, from the CPU, and of files that are not checkpoints."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.nn.parallel import DistributedDataParallel as DDP


def pt_load(path, map_location=None):
    """Takes a place and forgets it."""
    with open(path, "rb") as file:
        return torch.load(file)  # DDP404


def load_early_return(model, path):
    if dist.get_rank() != 0:
        return
    model.load_state_dict(torch.load(path))


class Trainer:
    def __init__(self, model, path, local_rank):
        self.gpu = local_rank
        self.model = model.to(self.gpu)
        if os.path.exists(path):
            self._load(path)
        self.model = DDP(self.model, device_ids=[self.gpu])

    def _load(self, path):
        snapshot = torch.load(path)  # DDP404
        self.model.load_state_dict(snapshot["model"])
        self.epoch = snapshot["epoch"]

    def _load_here(self, path):
        snapshot = torch.load(path, map_location=f"cuda:{self.gpu}")
        self.model.load_state_dict(snapshot["model"])


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    model = DistributedDataParallel(nn.Linear(32, 10).cuda(), device_ids=[local_rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer.load_state_dict(torch.load("optimizer.pt"))  # DDP404
    checkpoint = torch.load("last.pt", weights_only=True)  # DDP404
    model.module.load_state_dict(checkpoint)
    model.module.load_state_dict(torch.load("last.pt", map_location="cpu"))
    model.module.load_state_dict(torch.load("last.pt", torch.device("cuda", local_rank)))
    model.module.load_state_dict(pt_load("last.pt", map_location="cpu"))
    load_early_return(model.module, "last.pt")
    if dist.get_rank() == 0:
        model.module.load_state_dict(torch.load("last.pt"))
    optimizer.load_state_dict(torch.load(f"optimizer_{dist.get_rank()}.pt"))
    mean, deviation = torch.load("statistics.pt")
    trainer = Trainer(nn.Linear(32, 10), "snapshot.pt", local_rank)
    trainer._load_here("snapshot.pt")
    for _ in range(1000):
        loss = model((torch.randn(32, 32) - mean).cuda() / deviation.cuda()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
