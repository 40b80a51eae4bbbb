"""The flag set for good, computed, and unset."""

import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Optional(nn.Module):
    """Which parts are used depends on the input."""

    def __init__(self):
        super().__init__()
        self.always = nn.Linear(32, 10)
        self.sometimes = nn.Linear(32, 10)

    def forward(self, inputs, extra=None):
        outputs = self.always(inputs)
        if extra is not None:
            outputs = outputs + self.sometimes(extra)
        return outputs


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--find-unused", action="store_true")
    args = parser.parse_args()
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    first = DDP(nn.Linear(32, 10).cuda(), find_unused_parameters=True)  # DDP511
    models = [
        first,
        DDP(nn.Linear(32, 10).cuda(), find_unused_parameters=args.find_unused),
        DDP(nn.Linear(32, 10).cuda(), find_unused_parameters=False),
        DDP(Optional().cuda(), find_unused_parameters=True),
        DDP(nn.Linear(32, 10).cuda()),
    ]
    for model in models:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(1000):
            loss = model(torch.randn(32, 32, device=local_rank)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
