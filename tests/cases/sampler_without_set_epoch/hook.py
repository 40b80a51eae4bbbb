"""A hook that runs before each epoch tells the sampler."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Hook:
    def before_epoch(self, runner):
        pass


class SamplerSeedHook(Hook):
    def before_epoch(self, runner):
        runner.loader.sampler.set_epoch(runner.epoch)


class Runner:
    def __init__(self, model, loader, optimizer, hooks):
        self.model = model
        self.loader = loader
        self.optimizer = optimizer
        self.hooks = hooks
        self.epoch = 0

    def call_hooks(self, name):
        for hook in self.hooks:
            getattr(hook, name)(self)

    def run(self, epochs):
        while self.epoch < epochs:
            self.call_hooks("before_epoch")
            for inputs, targets in self.loader:
                loss = nn.functional.cross_entropy(self.model(inputs.cuda()), targets.cuda())
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            self.epoch += 1


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    model = DistributedDataParallel(nn.Linear(32, 10).cuda(), device_ids=[local_rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    dataset = TensorDataset(torch.randn(512, 32), torch.randint(10, (512,)))
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=32, sampler=sampler, num_workers=4)
    Runner(model, loader, optimizer, [SamplerSeedHook()]).run(90)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
