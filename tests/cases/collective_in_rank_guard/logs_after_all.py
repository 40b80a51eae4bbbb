"""The loss is averaged on all ranks and logged on one."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from comm import gather, is_main_process, reduce_dict


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    model = DistributedDataParallel(nn.Linear(32, 10).cuda(), device_ids=[local_rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(1000):
        loss = model(torch.randn(32, 32, device=local_rank)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            averages = reduce_dict({"loss": loss.detach()})
            parts = gather(loss.detach())
            if is_main_process():
                print(step, averages["loss"].item(), len(parts))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
