"""Windows of micro-batches in functions: averaged each time, averaged once."""

import os
from contextlib import contextmanager, nullcontext

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def every_micro_batch(model, optimizer, loader, window):
    for step, (inputs, targets) in enumerate(loader):  # DDP504
        loss = nn.functional.cross_entropy(model(inputs.cuda()), targets.cuda()) / window
        loss.backward()
        if (step + 1) % window == 0:
            optimizer.step()
            optimizer.zero_grad()


def inner_loop(model, optimizer, loader, window):
    batches = iter(loader)
    for _ in range(len(loader) // window):
        optimizer.zero_grad()
        for _ in range(window):  # DDP504
            inputs, targets = next(batches)
            loss = nn.functional.cross_entropy(model(inputs.cuda()), targets.cuda()) / window
            loss.backward()
        optimizer.step()


def last_one_only(model, optimizer, loader, window):
    for step, (inputs, targets) in enumerate(loader):
        last = (step + 1) % window == 0
        with nullcontext() if last else model.no_sync():
            loss = nn.functional.cross_entropy(model(inputs.cuda()), targets.cuda()) / window
            loss.backward()
        if last:
            optimizer.step()
            optimizer.zero_grad()


def two_branches(model, optimizer, loader, window):
    for step, (inputs, targets) in enumerate(loader):
        if (step + 1) % window == 0:
            loss = nn.functional.cross_entropy(model(inputs.cuda()), targets.cuda()) / window
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        else:
            with model.no_sync():
                loss = nn.functional.cross_entropy(model(inputs.cuda()), targets.cuda()) / window
                loss.backward()


def sets_the_flag(model, optimizer, loader, window):
    for step, (inputs, targets) in enumerate(loader):
        last = (step + 1) % window == 0
        model.require_backward_grad_sync = last
        loss = nn.functional.cross_entropy(model(inputs.cuda()), targets.cuda()) / window
        loss.backward()
        if last:
            optimizer.step()
            optimizer.zero_grad()


@contextmanager
def synchronized(model, sync):
    if sync:
        yield
    else:
        with model.no_sync():
            yield


def own_context(model, optimizer, loader, window):
    for step, (inputs, targets) in enumerate(loader):
        last = (step + 1) % window == 0
        with synchronized(model, last):
            loss = nn.functional.cross_entropy(model(inputs.cuda()), targets.cuda()) / window
            loss.backward()
        if last:
            optimizer.step()
            optimizer.zero_grad()


def one_by_one(model, optimizer, loader):
    for inputs, targets in loader:
        loss = nn.functional.cross_entropy(model(inputs.cuda()), targets.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    model = DistributedDataParallel(nn.Linear(32, 10).cuda(), device_ids=[local_rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    dataset = TensorDataset(torch.randn(512, 32), torch.randint(10, (512,)))
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=32, sampler=sampler, num_workers=4)
    every_micro_batch(model, optimizer, loader, window=4)
    inner_loop(model, optimizer, loader, window=4)
    last_one_only(model, optimizer, loader, window=4)
    two_branches(model, optimizer, loader, window=4)
    sets_the_flag(model, optimizer, loader, window=4)
    own_context(model, optimizer, loader, window=4)
    one_by_one(model, optimizer, loader)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
