"""One process for each GPU, a loader that walks through the data in order in each of them."""

import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset


def run(rank, world_size):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = "29500"
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=world_size)
    model = DistributedDataParallel(nn.Linear(32, 10).cuda(rank), device_ids=[rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    dataset = TensorDataset(torch.randn(512, 32), torch.randint(10, (512,)))
    train_loader = DataLoader(dataset, num_workers=5, shuffle=False, batch_size=32)  # DDP304
    if rank == 0:
        eval_loader = DataLoader(dataset, num_workers=1, shuffle=False, batch_size=1)
    for epoch in range(90):
        for inputs, targets in train_loader:
            loss = nn.functional.cross_entropy(model(inputs.cuda()), targets.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if rank == 0:
            evaluate(model.module, eval_loader)
    dist.destroy_process_group()


def evaluate(model, loader):
    model.eval()
    with torch.no_grad():
        scores = torch.cat([model(inputs.cuda()) for inputs, _ in loader])
    print("mean score", scores.mean().item())
    model.train()


if __name__ == "__main__":
    mp.spawn(run, args=(torch.cuda.device_count(),), nprocs=torch.cuda.device_count())
