"""A probe on gathered features: every rank fits the same small head, without DDP."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def fit(features, labels):
    head = nn.Linear(32, 10).cuda()
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(features, labels), batch_size=64, num_workers=0)
    for epoch in range(10):
        for batch, targets in loader:
            loss = nn.functional.cross_entropy(head(batch.cuda()), targets.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return head


local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
dist.init_process_group("nccl")
features = torch.randn(64, 32, device=local_rank)
gathered = [torch.empty_like(features) for _ in range(dist.get_world_size())]
dist.all_gather(gathered, features)
labels = torch.arange(len(gathered) * 64) % 10
fit(torch.cat(gathered).cpu(), labels)
dist.destroy_process_group()
