"""Guards by the rank within the node, in front of a path that all nodes share."""

import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def save_snapshot(model, path):
    torch.save({"model": model.module.state_dict()}, path)  # DDP402


def is_local_main():
    return int(os.environ.get("LOCAL_RANK", "0")) == 0


class Trainer:
    def __init__(self, model):
        self.local_rank = int(os.environ["LOCAL_RANK"])
        self.global_rank = int(os.environ["RANK"])
        self.model = model

    def save(self, name):
        if self.local_rank == 0:
            torch.save(self.model.module.state_dict(), name)  # DDP402

    def save_once(self, name):
        if self.global_rank == 0:
            torch.save(self.model.module.state_dict(), name)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--local-rank", type=int, default=0)
    parser.add_argument("--cache", default="/tmp/cache")
    parser.add_argument("--index", help="a folder on the local disk of each node")
    parser.add_argument("--shared", default="runs", help="where the team looks for it")
    args = parser.parse_args()
    torch.cuda.set_device(args.local_rank)
    dist.init_process_group("nccl")
    model = DDP(nn.Linear(32, 10).cuda(), device_ids=[args.local_rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(1000):
        loss = model(torch.randn(32, 32, device="cuda")).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if args.local_rank == 0:
        save_snapshot(model, "snapshot.pt")
        torch.save(model.module.state_dict(), f"node_{os.environ['GROUP_RANK']}.pt")
        torch.save(model.module.state_dict(), "/tmp/scratch.pt")
        torch.save(model.module.state_dict(), f"{args.cache}/warm.pt")
        torch.save(model.module.state_dict(), os.path.join(args.index, "warm.pt"))
    if args.local_rank == 0:
        torch.save(model.module.state_dict(), f"{args.shared}/last.pt")  # DDP402
    if args.local_rank in (-1, 0):
        torch.save(model.module.state_dict(), "membership.pt")  # DDP402
    if is_local_main():
        torch.save(model.module.state_dict(), "helper.pt")  # DDP402
    if args.local_rank == 0 and dist.get_rank() == 0:
        torch.save(model.module.state_dict(), "both.pt")
    trainer = Trainer(model)
    trainer.save("trainer.pt")
    trainer.save_once("once.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
