"""A DDP program that keeps its debugging barriers in the step."""

import os

import torch
import torch.distributed as dist
from sync import average, wait_for_all, wait_for_rank_zero
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def train(model, loader, optimizer, device):
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        loss = nn.functional.cross_entropy(model(images), labels)
        dist.barrier()  # DDP103
        mean = average(loss.detach())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        wait_for_all()
    return mean


def train_gated(model, loader, optimizer, device):
    for step, (images, labels) in enumerate(loader):
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
        if step % 500 == 0:
            dist.barrier()


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    device = torch.device("cuda", local_rank)
    with wait_for_rank_zero(local_rank):
        data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
    sampler = DistributedSampler(data, drop_last=True)
    loader = DataLoader(data, batch_size=64, sampler=sampler, num_workers=4, pin_memory=True)
    model = DistributedDataParallel(nn.Linear(32, 10).to(device), device_ids=[local_rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(10):
        sampler.set_epoch(epoch)
        train(model, loader, optimizer, device)
        train_gated(model, loader, optimizer, device)
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
