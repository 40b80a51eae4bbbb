"""Nobody looks on while these ranks run: those that are left wait for the one that failed."""

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def work(rank, world_size):
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", "tcp://localhost:29500", rank=rank, world_size=world_size)
    model = DistributedDataParallel(nn.Linear(32, 32).cuda(), device_ids=[rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(1000):
        loss = model(torch.randn(32, 32, device="cuda")).square().mean()
        if torch.isnan(loss):  # DDP102
            raise FloatingPointError("the loss is not a number")  # DDP502
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    ranks = mp.spawn(work, args=(2,), nprocs=2, join=False)
    for process in ranks.processes:
        process.join()
