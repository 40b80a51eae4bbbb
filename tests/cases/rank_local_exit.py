"""Steps that one rank leaves on a number of its own, and steps that all leave together."""

import math
import os
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def reduce_max(flag):
    dist.all_reduce(flag, op=dist.ReduceOp.MAX)
    return flag


def skips(model, optimizer, loader):
    for inputs, targets in loader:
        loss = nn.functional.cross_entropy(model(inputs.cuda()), targets.cuda())
        if torch.isnan(loss):  # DDP102
            continue  # DDP502
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def stops(model, optimizer, loader):
    for inputs, targets in loader:
        loss = nn.functional.cross_entropy(model(inputs.cuda()), targets.cuda())
        value = loss.item()  # DDP101
        if not math.isfinite(value):
            sys.exit(1)  # DDP502
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def insists(model, optimizer, loader):
    for inputs, targets in loader:
        loss = nn.functional.cross_entropy(model(inputs.cuda()), targets.cuda())
        value = loss.item()  # DDP101
        assert math.isfinite(value)  # DDP502
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def goes_around(model, optimizer, loader):
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs.cuda()), targets.cuda())
        if loss < 100.0:  # DDP102, DDP502
            loss.backward()
            optimizer.step()


def short_of_data(model, optimizer, loader):
    for inputs, targets in loader:
        kept = targets >= 0
        if not kept.any():
            continue  # DDP502
        loss = nn.functional.cross_entropy(model(inputs[kept].cuda()), targets[kept].cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def out_of_time(model, optimizer, loader):
    started = time.monotonic()
    for inputs, targets in loader:
        if time.monotonic() - started > 3600:
            break  # DDP502
        loss = nn.functional.cross_entropy(model(inputs.cuda()), targets.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def together(model, optimizer, loader):
    for inputs, targets in loader:
        loss = nn.functional.cross_entropy(model(inputs.cuda()), targets.cuda())
        broken = reduce_max(loss.detach().isnan().float())
        if broken:  # DDP102
            continue
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def on_the_average(model, optimizer, loader):
    for inputs, targets in loader:
        loss = nn.functional.cross_entropy(model(inputs.cuda()), targets.cuda())
        average = loss.detach().clone()
        dist.all_reduce(average)
        value = average.item()  # DDP101
        if not math.isfinite(value):
            sys.exit(1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def on_the_norm(model, optimizer, loader):
    for inputs, targets in loader:
        loss = nn.functional.cross_entropy(model(inputs.cuda()), targets.cuda())
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if not torch.isfinite(norm):  # DDP102
            continue
        optimizer.step()


def equal_everywhere(model, optimizer, loader, most):
    for step, (inputs, targets) in enumerate(loader):
        if step == most:
            break
        if step < 10:
            continue
        loss = nn.functional.cross_entropy(model(inputs.cuda()), targets.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def after_everything(model, optimizer, loader):
    """Nothing is sent after the decision but the next step, and all go there."""
    skipped = 0
    for inputs, targets in loader:
        loss = nn.functional.cross_entropy(model(inputs.cuda()), targets.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if (targets < 0).any():
            skipped += 1
            continue
        skipped -= 1
    return skipped


def through_anyway(model, optimizer, loader):
    for inputs, targets in loader:
        logits = model(inputs.cuda()).nan_to_num()
        optimizer.zero_grad()
        nn.functional.cross_entropy(logits, targets.cuda()).backward()
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
    skips(model, optimizer, loader)
    stops(model, optimizer, loader)
    insists(model, optimizer, loader)
    goes_around(model, optimizer, loader)
    short_of_data(model, optimizer, loader)
    out_of_time(model, optimizer, loader)
    together(model, optimizer, loader)
    on_the_average(model, optimizer, loader)
    on_the_norm(model, optimizer, loader)
    equal_everywhere(model, optimizer, loader, most=100)
    after_everything(model, optimizer, loader)
    through_anyway(model, optimizer, loader)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
