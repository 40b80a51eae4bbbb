"""The spawned index is not the rank here, so each node has a process 0."""

import argparse

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def worker(gpu, gpus, node, nodes):
    torch.cuda.set_device(gpu)
    rank = node * gpus + gpu
    dist.init_process_group("nccl", "tcp://10.0.0.1:29500", rank=rank, world_size=gpus * nodes)
    model = DistributedDataParallel(nn.Linear(32, 10).cuda(gpu), device_ids=[gpu])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(1000):
        loss = model(torch.randn(32, 32, device=gpu)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if gpu == 0:
        torch.save(model.module.state_dict(), "last.pt")  # DDP402
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--node", type=int, default=0)
    parser.add_argument("--nodes", type=int, default=2)
    args = parser.parse_args()
    gpus = torch.cuda.device_count()
    mp.spawn(worker, nprocs=gpus, args=(gpus, args.node, args.nodes))
