"""A loop over whole trainings, each of which first measures one backward pass: no step loop."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def memory_of(model):
    model(torch.randn(64, 32).cuda()).sum().backward()
    return torch.cuda.max_memory_allocated()


def seconds_of(model):
    for size in (1, 2, 4):
        model(torch.randn(size, 32).cuda()).sum().backward()


def train(local_rank, rate):
    dist.barrier()
    data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
    model = nn.Linear(32, 10).cuda()
    print(local_rank, memory_of(model), seconds_of(model))
    model = DistributedDataParallel(model, device_ids=[local_rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=64, num_workers=4, sampler=sampler)
    for epoch in range(10):
        sampler.set_epoch(epoch)
        for images, labels in loader:
            loss = nn.functional.cross_entropy(model(images.cuda()), labels.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            dist.barrier()  # DDP103


def main(options):
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    for generation in range(options.generations):
        train(local_rank, 0.1 * generation)
    dist.destroy_process_group()
