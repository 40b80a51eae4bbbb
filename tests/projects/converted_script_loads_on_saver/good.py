"""Train a denoiser with DDP and go on from the newest snapshot."""

import os
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

SNAPSHOT = Path("snapshot.pt")


class Denoiser(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv1d(1, width, 9, padding=4),
            nn.GELU(),
            nn.Conv1d(width, 1, 9, padding=4),
        )

    def forward(self, noisy):
        return noisy - self.layers(noisy)


def load_snapshot(model, optimizer):
    if not SNAPSHOT.exists():
        return 0
    snapshot = torch.load(SNAPSHOT, map_location="cpu")
    model.load_state_dict(snapshot["model"])
    optimizer.load_state_dict(snapshot["optimizer"])
    return snapshot["epoch"] + 1


def save_snapshot(model, optimizer, epoch):
    snapshot = {
        "model": model.module.state_dict(),
        "optimizer": optimizer.state_dict(),
        "epoch": epoch,
    }
    torch.save(snapshot, SNAPSHOT)


def main():
    local_rank, rank = int(os.environ["LOCAL_RANK"]), int(os.environ["RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    clean = torch.load("signals.pt", map_location="cpu")
    dataset = TensorDataset(clean + 0.1 * torch.randn_like(clean), clean)
    sampler = DistributedSampler(dataset, seed=17)
    loader = DataLoader(dataset, 64, sampler=sampler, num_workers=2, pin_memory=True)

    model = Denoiser().cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    first_epoch = load_snapshot(model, optimizer)
    model = DDP(model, device_ids=[local_rank])
    for epoch in range(first_epoch, 100):
        sampler.set_epoch(epoch)
        for noisy, clean in loader:
            noisy = noisy.cuda(non_blocking=True)
            clean = clean.cuda(non_blocking=True)
            loss = nn.functional.mse_loss(model(noisy), clean)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if rank == 0 and epoch % 10 == 9:
            save_snapshot(model, optimizer, epoch)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
