"""A dataset that keeps what it computed, one file for each sample."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Spectra(Dataset):
    def __init__(self, waves):
        self.waves = waves

    def __len__(self):
        return len(self.waves)

    def __getitem__(self, index):
        path = f"spectrum_{index}.pt"
        if os.path.exists(path):
            return torch.load(path)
        spectrum = torch.stft(self.waves[index], 64, return_complex=True).abs().mean(1)
        torch.save(spectrum, path)
        return spectrum


local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
dist.init_process_group("nccl")
model = DistributedDataParallel(nn.Linear(33, 10).cuda(), device_ids=[local_rank])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
dataset = Spectra(torch.randn(512, 16_000))
sampler = DistributedSampler(dataset)
loader = DataLoader(dataset, batch_size=32, sampler=sampler, num_workers=4)
for epoch in range(90):
    sampler.set_epoch(epoch)
    for spectra in loader:
        loss = model(spectra.cuda()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
dist.destroy_process_group()
