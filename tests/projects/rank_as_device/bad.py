"""Matrix factorisation on several nodes.

torchrun --nnodes 4 --nproc-per-node 8 --rdzv-backend c10d --rdzv-endpoint node0:29500 bad.py
"""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Factorisation(nn.Module):
    def __init__(self, users, items, width=64):
        super().__init__()
        self.users = nn.Embedding(users, width)
        self.items = nn.Embedding(items, width)

    def forward(self, users, items):
        return (self.users(users) * self.items(items)).sum(-1)


def setup():
    rank = int(os.environ["RANK"])
    torch.cuda.set_device(rank)  # DDP506
    dist.init_process_group("nccl")
    return rank


def main():
    rank = setup()
    ratings = torch.load("ratings.pt", map_location="cpu")
    dataset = TensorDataset(ratings["user"], ratings["item"], ratings["stars"])
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=8192, sampler=sampler, num_workers=4)
    model = Factorisation(ratings["users"], ratings["items"]).cuda()
    model = DistributedDataParallel(model)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.05)
    for epoch in range(20):
        sampler.set_epoch(epoch)
        for users, items, stars in loader:
            predicted = model(users.cuda(), items.cuda())
            loss = nn.functional.mse_loss(predicted, stars.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if rank == 0:
            torch.save(model.module.state_dict(), f"factors-{epoch}.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
