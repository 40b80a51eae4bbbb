"""Without a device it is one process; with one, the place is given."""

import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpu", type=int)
    args = parser.parse_args()
    model = nn.Linear(32, 10)
    if args.gpu is None:
        weights = torch.load("last.pt")
    else:
        torch.cuda.set_device(args.gpu)
        dist.init_process_group("nccl")
        weights = torch.load("last.pt", map_location=f"cuda:{args.gpu}")
    model.load_state_dict(weights)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if args.gpu is not None:
        model = DistributedDataParallel(model.cuda(), device_ids=[args.gpu])
    for _ in range(1000):
        loss = model(torch.randn(32, 32)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if args.gpu is not None:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
