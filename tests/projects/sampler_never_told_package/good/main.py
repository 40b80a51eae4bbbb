"""Classify molecules: python main.py, or torchrun --nproc-per-node N main.py."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import TensorDataset

from recipe.hooks import SamplerSeed, Timer
from recipe.loaders import make_loader
from recipe.runner import Runner


def main():
    rank = int(os.environ.get("RANK", 0))
    local_rank = int(os.environ.get("LOCAL_RANK", 0))
    distributed = int(os.environ.get("WORLD_SIZE", 1)) > 1
    torch.cuda.set_device(local_rank)
    if distributed:
        dist.init_process_group("nccl")
    molecules = torch.load("molecules.pt", map_location="cpu")
    dataset = TensorDataset(molecules["fingerprints"], molecules["classes"])
    loader = make_loader(dataset, 256, distributed)
    model = nn.Sequential(nn.Linear(2048, 512), nn.ReLU(), nn.Linear(512, 12)).cuda()
    if distributed:
        model = DistributedDataParallel(model, device_ids=[local_rank])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    hooks = [SamplerSeed(), Timer()]
    Runner(model, optimizer, loader, rank, local_rank, hooks).run(epochs=40)
    if distributed:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
