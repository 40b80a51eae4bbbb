"""Tabular regression with DDP; the console shows every line as often as there are GPUs."""

import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def build_model(columns):
    return nn.Sequential(
        nn.LayerNorm(columns), nn.Linear(columns, 512), nn.SiLU(), nn.Linear(512, 1)
    )


def train_epoch(model, loader, optimizer, epoch, log_interval=20):
    model.train()
    began = time.time()
    for step, (rows, prices) in enumerate(loader):
        rows, prices = rows.cuda(), prices.cuda()
        loss = nn.functional.huber_loss(model(rows).squeeze(-1), prices)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % log_interval == 0:
            print(f"train epoch {epoch} [{step}/{len(loader)}]\tloss {loss.item():.4f}")  # DDP509
    return time.time() - began


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    table = torch.load("houses.pt", map_location="cpu")
    dataset = TensorDataset(table["rows"], table["prices"])
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=512, sampler=sampler, num_workers=2)
    model = DDP(build_model(table["rows"].shape[1]).cuda(), device_ids=[local_rank])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(10):
        sampler.set_epoch(epoch)
        seconds = train_epoch(model, loader, optimizer, epoch)
        print("epoch", epoch, "took", round(seconds, 1), "seconds")  # DDP509
    if dist.get_rank() == 0:
        torch.save(model.module.state_dict(), "houses-mlp.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
