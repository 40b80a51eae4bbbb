"""The rank is made of node and index, and the index is the device."""

import argparse

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def run(gpu, args):
    args.rank = args.node * args.gpus + gpu
    torch.cuda.set_device(gpu)
    dist.init_process_group("nccl", args.url, rank=args.rank, world_size=args.gpus * args.nodes)
    model = DistributedDataParallel(nn.Linear(32, 10).cuda(gpu), device_ids=[gpu])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(1000):
        loss = model(torch.randn(32, 32, device=gpu)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if args.rank == 0 and step % 100 == 0:
            print(step, loss.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--node", type=int, default=0)
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument("--url", default="tcp://127.0.0.1:29500")
    args = parser.parse_args()
    args.gpus = torch.cuda.device_count()
    mp.spawn(run, args=(args,), nprocs=args.gpus)
