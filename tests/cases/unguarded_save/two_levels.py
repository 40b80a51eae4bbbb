"""The guard is two calls away, and asks a function of another file."""

import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from saving import is_primary, save_guarded


class Trainer:
    def __init__(self, args, model):
        self.args = args
        self.model = model

    def snapshot(self, epoch):
        self.write({"model": self.model.module.state_dict(), "epoch": epoch})

    def write(self, state):
        save_guarded(state, os.path.join(self.args.out, "last.pt"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default="out")
    args = parser.parse_args()
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    args.rank = dist.get_rank()
    model = DistributedDataParallel(nn.Linear(32, 10).cuda(), device_ids=[local_rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    trainer = Trainer(args, model)
    for epoch in range(10):
        loss = model(torch.randn(32, 32, device=local_rank)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if is_primary(args) and epoch % 2 == 0:
            trainer.snapshot(epoch)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
