"""A path that nobody on the ranks passes: each caller hands its own default on, so that no file is
read.  Of those whose value is not known, one is enough."""

import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

URL = "https://example.org/weights.pth"


def restore(model, path=None):
    if isinstance(path, str):
        weights = torch.load(path)
    else:
        weights = torch.hub.load_state_dict_from_url(URL, map_location="cpu")
    model.load_state_dict(weights)


def named(model, path=""):
    if path != "":
        model.load_state_dict(torch.load(path))


def wanted(model, path=None, strict=True):
    if not path:
        return
    model.load_state_dict(torch.load(path), strict=strict)


def given(model, path=None):
    if path is not None:
        model.load_state_dict(torch.load(path))  # DDP404


def kind_of_given(model, path=None):
    if isinstance(path, (str, os.PathLike)):
        model.load_state_dict(torch.load(path))  # DDP404


def filled_in(model, path=None):
    path = path or "last.pt"
    if path is not None:
        model.load_state_dict(torch.load(path))  # DDP404


def build(path=None, start="", last=None):
    model = nn.Linear(32, 10)
    restore(model, path)
    named(model, start)
    wanted(model, path=last)
    filled_in(model)
    return model


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--resume")
    args = parser.parse_args()
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    model = build()
    given(model)
    given(model, args.resume)
    kind_of_given(model, args.resume)
    model = DistributedDataParallel(model.cuda(), device_ids=[local_rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(1000):
        loss = model(torch.randn(32, 32, device=local_rank)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
