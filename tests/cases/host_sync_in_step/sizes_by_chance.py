"""Numbers that say where this step cuts its batch, through a random choice: none to look at."""

import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Clips(Dataset):
    def __len__(self):
        return 640

    def __getitem__(self, index):
        return torch.randn(8, 200), 100 + index % 100


class Scaled(nn.Module):
    scale = 1.0

    def __init__(self):
        super().__init__()
        self.layer = nn.Conv1d(8, 8, 3)

    def forward(self, images):
        return self.layer(images / self.scale)


class Wrapped(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Scaled()

    def forward(self, images):
        return self.inner(images)


model = Wrapped().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for clips, lengths in DataLoader(Clips(), batch_size=8, num_workers=4):
    clips, lengths = clips.cuda(), lengths.cuda()
    width = int(lengths.min().item() / 2 - 1)  # DDP101
    pieces = []
    for i in range(len(lengths)):
        length = int(lengths[i].item() / 2)  # DDP101
        start = np.random.randint(0, length - width)
        pieces.append(clips[i, :, start : start + width])
    cut = max(random.choice(lengths.tolist()), 128)  # DDP101
    model.inner.scale = clips.std(dim=-1).mean().item()  # DDP101
    loss = model(torch.stack(pieces)).square().mean() + clips[:, :, :cut].mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
