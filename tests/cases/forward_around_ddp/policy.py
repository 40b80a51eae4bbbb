"""A policy update in inner loops; the old probabilities come from under no_grad."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def update(actor, optimizer, rollouts, old):
    raw_actor = actor.module if isinstance(actor, DDP) else actor
    for _ in range(4):
        for start in range(0, len(rollouts), 8):
            part = slice(start, start + 8)
            new = raw_actor(rollouts[part]).log_softmax(-1)  # DDP503
            ratio = (new - old[part]).exp()
            loss = -ratio.clamp(0.8, 1.2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    actor = DDP(nn.Linear(32, 10).cuda(), device_ids=[local_rank])
    optimizer = torch.optim.SGD(actor.parameters(), lr=0.1)
    for _ in range(100):
        rollouts = torch.randn(64, 32, device=local_rank)
        with torch.no_grad():
            old = actor.module(rollouts).log_softmax(-1)
        update(actor, optimizer, rollouts, old)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
