"""Contrastive image-text training under torchrun, with accumulation."""

import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

ACCUMULATE = 8


class TwoTowers(nn.Module):
    def __init__(self, width=512):
        super().__init__()
        self.image = nn.Sequential(nn.Linear(2048, width), nn.GELU(), nn.Linear(width, width))
        self.text = nn.Sequential(nn.Linear(768, width), nn.GELU(), nn.Linear(width, width))
        self.temperature = nn.Parameter(torch.tensor(2.6))

    def forward(self, images, texts):
        images = F.normalize(self.image(images), dim=-1)
        texts = F.normalize(self.text(texts), dim=-1)
        return self.temperature.exp() * images @ texts.T


def main():
    dist.init_process_group("nccl", device_id=torch.device("cuda", int(os.environ["LOCAL_RANK"])))
    rank, local_rank = dist.get_rank(), int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    pairs = torch.load("features.pt", map_location="cpu")
    dataset = TensorDataset(pairs["image"], pairs["text"])
    sampler = DistributedSampler(dataset, drop_last=True)
    loader = DataLoader(dataset, batch_size=256, sampler=sampler, num_workers=2, drop_last=True)
    model = DistributedDataParallel(TwoTowers().cuda(), device_ids=[local_rank])
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, weight_decay=0.2)
    labels = torch.arange(256, device=local_rank)

    for epoch in range(30):
        sampler.set_epoch(epoch)
        for step, (images, texts) in enumerate(loader):  # DDP504
            logits = model(images.cuda(), texts.cuda())
            loss = (F.cross_entropy(logits, labels) + F.cross_entropy(logits.T, labels)) / 2
            (loss / ACCUMULATE).backward()
            if (step + 1) % ACCUMULATE == 0:
                optimizer.step()
                optimizer.zero_grad()
        if rank == 0:
            print(f"epoch {epoch}: {loss.item():.3f}")
    if rank == 0:
        torch.save(model.module.state_dict(), "towers.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
