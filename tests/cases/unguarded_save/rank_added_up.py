"""The rank starts at zero and is completed in each process: it is no constant."""

import argparse

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def worker(gpu, args):
    args.rank += gpu
    torch.cuda.set_device(gpu)
    dist.init_process_group("nccl", args.url, rank=args.rank, world_size=args.world_size)
    model = DistributedDataParallel(nn.Linear(32, 10).cuda(gpu), device_ids=[gpu])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(1000):
        loss = model(torch.randn(32, 32, device=gpu)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if args.rank == 0:
        torch.save(model.module.state_dict(), "last.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    args = parser.parse_args()
    args.rank = 0
    args.url = "tcp://localhost:29500"
    args.world_size = torch.cuda.device_count()
    mp.spawn(worker, nprocs=args.world_size, args=(args,))
