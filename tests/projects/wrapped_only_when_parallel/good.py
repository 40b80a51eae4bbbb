"""One script for one GPU and for many: what is trained and what is saved fit both."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, RandomSampler, TensorDataset

world_size = int(os.environ.get("WORLD_SIZE", 1))
rank = int(os.environ.get("RANK", 0))
local_rank = int(os.environ.get("LOCAL_RANK", 0))


class Ranker(nn.Module):
    def __init__(self, features=136):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(features, 256), nn.ReLU(), nn.Linear(256, 64))
        self.score = nn.Linear(64, 1)

    def rate(self, documents):
        return self.score(torch.relu(self.body(documents))).squeeze(-1)

    def forward(self, better, worse):
        return nn.functional.softplus(self.rate(worse) - self.rate(better)).mean()


def main():
    torch.cuda.set_device(local_rank)
    if world_size > 1:
        dist.init_process_group("nccl")
    pairs = torch.load("pairs.pt", map_location="cpu")
    dataset = TensorDataset(pairs["better"], pairs["worse"])
    sampler = DistributedSampler(dataset) if world_size > 1 else RandomSampler(dataset)
    loader = DataLoader(dataset, batch_size=1024, sampler=sampler, num_workers=4)
    model = Ranker().cuda()
    model = DistributedDataParallel(model, [local_rank]) if world_size > 1 else model
    ranker = model.module if world_size > 1 else model
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(20):
        if world_size > 1:
            sampler.set_epoch(epoch)
        for better, worse in loader:
            loss = model(better.cuda(), worse.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if rank == 0:
            torch.save(ranker.state_dict(), f"ranker-{epoch}.pt")
    if world_size > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
