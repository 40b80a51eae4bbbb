"""Overrides the step and puts only the backward inside."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from brain import Brain


class LateBrain(Brain):
    def fit_batch(self, inputs):
        should_step = self.step % self.window == 0
        loss = self.compute_forward(inputs)
        with self.no_sync(not should_step):  # DDP505
            loss.backward()
        if should_step:
            self.optimizer.step()
            self.optimizer.zero_grad()


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    model = DistributedDataParallel(nn.Linear(32, 10).cuda(), device_ids=[local_rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batches = [torch.randn(32, 32, device=local_rank) for _ in range(100)]
    LateBrain(model, optimizer, window=4).fit(batches)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
