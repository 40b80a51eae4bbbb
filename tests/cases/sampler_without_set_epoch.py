"""A trainer that builds its own loader and never tells the sampler its epoch."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Trainer:
    def __init__(self, model, train_set, config):
        self.config = config
        self.local_rank = int(os.environ["LOCAL_RANK"])
        self.train_loader = self._prepare_loader(train_set)
        self.model = DDP(model.to(self.local_rank), device_ids=[self.local_rank])
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=config["lr"])

    def _prepare_loader(self, dataset):
        return DataLoader(
            dataset,
            batch_size=self.config["batch_size"],
            num_workers=self.config["workers"],
            sampler=DistributedSampler(dataset),
        )

    def _run_batch(self, source, targets):
        loss = nn.functional.cross_entropy(self.model(source), targets)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()

    def _run_epoch(self, epoch):
        for source, targets in self.train_loader:
            self._run_batch(source.to(self.local_rank), targets.to(self.local_rank))

    def train(self, epochs):
        for epoch in range(epochs):  # DDP301
            self._run_epoch(epoch)


def main():
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group(backend="nccl")
    dataset = TensorDataset(torch.randn(512, 32), torch.randint(10, (512,)))
    config = {"lr": 3e-4, "batch_size": 64, "workers": 4}
    trainer = Trainer(nn.Linear(32, 10), dataset, config)
    trainer.train(epochs=10)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
