"""no_sync() around the backward alone, around the forward alone, around both."""

import os
from contextlib import nullcontext

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def backward_only(model, optimizer, loader):
    for step, (inputs, targets) in enumerate(loader):
        loss = nn.functional.cross_entropy(model(inputs.cuda()), targets.cuda()) / 4
        if (step + 1) % 4 == 0:
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        else:
            with model.no_sync():  # DDP505
                loss.backward()


def conditional(model, optimizer, loader):
    for step, (inputs, targets) in enumerate(loader):
        last = (step + 1) % 4 == 0
        logits = model(inputs.cuda())
        with nullcontext() if last else model.no_sync():  # DDP505
            loss = nn.functional.cross_entropy(logits, targets.cuda()) / 4
            loss.backward()
        if last:
            optimizer.step()
            optimizer.zero_grad()


def forward_only(model, optimizer, loader):
    for step, (inputs, targets) in enumerate(loader):
        last = (step + 1) % 4 == 0
        with nullcontext() if last else model.no_sync():
            loss = nn.functional.cross_entropy(model(inputs.cuda()), targets.cuda()) / 4
        loss.backward()
        if last:
            optimizer.step()
            optimizer.zero_grad()


def both(model, optimizer, loader):
    for step, (inputs, targets) in enumerate(loader):
        last = (step + 1) % 4 == 0
        with nullcontext() if last else model.no_sync():
            loss = nn.functional.cross_entropy(model(inputs.cuda()), targets.cuda()) / 4
            loss.backward()
        if last:
            optimizer.step()
            optimizer.zero_grad()


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    model = DistributedDataParallel(nn.Linear(32, 10).cuda(), device_ids=[local_rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    dataset = TensorDataset(torch.randn(512, 32), torch.randint(10, (512,)))
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=32, sampler=sampler, num_workers=4)
    backward_only(model, optimizer, loader)
    conditional(model, optimizer, loader)
    forward_only(model, optimizer, loader)
    both(model, optimizer, loader)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
