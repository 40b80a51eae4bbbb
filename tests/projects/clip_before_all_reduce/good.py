"""Data parallelism by hand: gradients are averaged, then all ranks clip the same ones."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Forecaster(nn.Module):
    """96 hours in, 24 hours out."""

    def __init__(self, width=128):
        super().__init__()
        self.rnn = nn.GRU(8, width, batch_first=True)
        self.head = nn.Linear(width, 24)

    def forward(self, history):
        _, state = self.rnn(history)
        return self.head(state[-1])


def average_gradients(model):
    for parameter in model.parameters():
        if parameter.grad is not None:
            dist.all_reduce(parameter.grad)
            parameter.grad /= dist.get_world_size()


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    hours = torch.load("load-curves.pt", map_location="cpu")
    dataset = TensorDataset(hours["history"], hours["future"])
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=256, sampler=sampler, num_workers=2)
    torch.manual_seed(0)
    model = Forecaster().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(25):
        sampler.set_epoch(epoch)
        for history, future in loader:
            loss = nn.functional.l1_loss(model(history.cuda()), future.cuda())
            optimizer.zero_grad()
            loss.backward()
            average_gradients(model)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        if dist.get_rank() == 0:
            torch.save(model.state_dict(), "forecaster.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
