"""Accelerate tells the sampler of a loader that it has prepared."""

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def main():
    accelerator = Accelerator()
    dataset = TensorDataset(torch.randn(512, 32), torch.randint(10, (512,)))
    sampler = DistributedSampler(
        dataset, num_replicas=accelerator.num_processes, rank=accelerator.process_index
    )
    loader = DataLoader(dataset, batch_size=32, sampler=sampler, num_workers=4)
    model = nn.Linear(32, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for epoch in range(90):
        for inputs, targets in loader:
            loss = nn.functional.cross_entropy(model(inputs), targets)
            optimizer.zero_grad()
            accelerator.backward(loss)
            optimizer.step()


if __name__ == "__main__":
    main()
