"""A single-GPU script that got DDP: one rank writes, and what it writes has plain names."""

import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class Autoencoder(nn.Module):
    def __init__(self, inputs=784, code=32):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(inputs, 256), nn.ReLU(), nn.Linear(256, code))
        self.decoder = nn.Sequential(nn.Linear(code, 256), nn.ReLU(), nn.Linear(256, inputs))

    def forward(self, x):
        return self.decoder(self.encoder(x))


def train(args):
    gpu = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(gpu)
    dist.init_process_group("nccl")

    data = TensorDataset(torch.load("digits.pt", map_location="cpu"))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=args.batch_size, sampler=sampler, num_workers=2)
    model = DDP(Autoencoder().to(gpu), device_ids=[gpu])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    criterion = nn.MSELoss()

    best = float("inf")
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        total = torch.zeros(1, device=gpu)
        for (x,) in loader:
            x = x.to(gpu)
            loss = criterion(model(x), x)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()

        dist.all_reduce(total)
        mean = total.item() / len(loader) / dist.get_world_size()
        if mean < best:
            best = mean
            if dist.get_rank() == 0:
                torch.save(model.module.state_dict(), os.path.join(args.output, "best.pt"))
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--output", default=".")
    train(parser.parse_args())
