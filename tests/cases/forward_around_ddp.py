"""Losses that flow around the wrapper, and uses of the inner model that are fine."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(32, 16)
        self.head = nn.Linear(16, 10)
        self.scale = 1.0

    def encode(self, inputs):
        return self.encoder(inputs)

    def decode_only(self, features):
        return self.head(features)

    def forward(self, inputs):
        return self.head(self.encode(inputs))


def direct(model, optimizer, batches):
    for inputs in batches:
        loss = model.module(inputs).square().mean()  # DDP503
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def by_alias(model, optimizer, batches):
    unwrapped = model.module if isinstance(model, DDP) else model
    for inputs in batches:
        outputs = unwrapped(inputs)  # DDP503
        loss = outputs.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def by_method(model, optimizer, batches):
    for inputs in batches:
        features = model.module.encode(inputs)  # DDP503
        loss = features.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def half_of_it(model, optimizer, batches):
    """One backward for both: the wrapper sees the sum of the gradients."""
    for inputs in batches:
        loss = model(inputs).square().mean()
        loss = loss + model.module.encode(inputs).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def by_forward(model, optimizer, batches):
    for inputs in batches:
        loss = model.forward(inputs).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def looks_inside(model, optimizer, batches, ema):
    for inputs in batches:
        with torch.no_grad():
            weight = model.module.head.weight.clone()
            model.module.head.weight.copy_(nn.functional.normalize(weight, dim=1))
            target = model.module(inputs)
        loss = (model(inputs) - target).square().mean() * model.module.scale
        optimizer.zero_grad()
        loss.backward()
        model.module.head.weight.grad.mul_(0.5)
        optimizer.step()
        with torch.no_grad():
            for kept, current in zip(ema.parameters(), model.module.parameters()):
                kept.lerp_(current, 0.01)


def detached(model, optimizer, batches):
    for inputs in batches:
        target = model.module(inputs).detach()
        loss = (model(inputs) - target).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def evaluate(model, batches):
    model.eval()
    with torch.no_grad():
        return torch.cat([model.module(inputs).argmax(1) for inputs in batches])


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    model = DDP(Net().cuda(), device_ids=[local_rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batches = [torch.randn(32, 32, device=local_rank) for _ in range(100)]
    direct(model, optimizer, batches)
    by_alias(model, optimizer, batches)
    by_method(model, optimizer, batches)
    half_of_it(model, optimizer, batches)
    by_forward(model, optimizer, batches)
    looks_inside(model, optimizer, batches, Net().cuda())
    detached(model, optimizer, batches)
    evaluate(model, batches)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
