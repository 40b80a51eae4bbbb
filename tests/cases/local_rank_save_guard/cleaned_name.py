"""The name of the folder is cleaned character by character: it is the same on all ranks."""

import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

local_rank = 0


def start():
    global local_rank
    local_rank = int(os.environ["RANK"]) % torch.cuda.device_count()
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")


def is_local_master():
    return local_rank == 0


def cleaned(folder):
    above, name = os.path.dirname(folder), os.path.basename(folder)
    return os.path.join(above, "".join(c if c.isalnum() else "_" for c in name))


def save(args, model):
    if is_local_master():
        torch.save(model.module.state_dict(), os.path.join(args.folder, "last.pt"))  # DDP402


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder")
    args = parser.parse_args()
    args.folder = cleaned(args.folder)
    start()
    model = DistributedDataParallel(nn.Linear(32, 10).cuda(), device_ids=[local_rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(1000):
        loss = model(torch.randn(32, 32, device=local_rank)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    save(args, model)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
