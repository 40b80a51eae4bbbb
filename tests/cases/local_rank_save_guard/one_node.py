"""The launcher starts one node and no more: its index is the rank."""

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def worker(gpu, world_size):
    torch.cuda.set_device(gpu)
    dist.init_process_group("nccl", "tcp://127.0.0.1:29500", rank=gpu, world_size=world_size)
    model = DistributedDataParallel(nn.Linear(32, 10).cuda(gpu), device_ids=[gpu])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(1000):
        loss = model(torch.randn(32, 32, device=gpu)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if gpu == 0:
        torch.save(model.module.state_dict(), "last.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(worker, nprocs=torch.cuda.device_count(), args=(torch.cuda.device_count(),))
