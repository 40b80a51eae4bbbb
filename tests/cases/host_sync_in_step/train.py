"""Entry point: the process group, the data and the epochs."""

import os

import torch
import torch.distributed as dist
from engine import train_one_epoch
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    device = torch.device("cuda", local_rank)
    data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
    sampler = DistributedSampler(data, drop_last=True)
    loader = DataLoader(data, batch_size=64, sampler=sampler, num_workers=4, pin_memory=True)
    model = DistributedDataParallel(nn.Linear(32, 10).to(device), device_ids=[local_rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(10):
        sampler.set_epoch(epoch)
        train_one_epoch(model, loader, optimizer, device, log_every=50)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
