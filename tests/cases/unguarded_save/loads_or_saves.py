"""One helper for both: without a model it only reads, and that is how all ranks call it."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def checkpoint(path, model=None):
    if model is not None:
        torch.save(model.state_dict(), path)
        return None
    return torch.load(path, map_location="cpu") if os.path.exists(path) else None


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    model = nn.Linear(32, 10).cuda()
    weights = checkpoint("last.pt")
    if weights is not None:
        model.load_state_dict(weights)
    model = DistributedDataParallel(model, device_ids=[local_rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(1000):
        loss = model(torch.randn(32, 32, device=local_rank)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if dist.get_rank() == 0:
        checkpoint("last.pt", model=model.module)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
