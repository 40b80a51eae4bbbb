"""The loaders come from another file, with their samplers; one is handed over by position."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DistributedSampler

from data import any_loader, make_dataset, sharded_loader


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    model = DistributedDataParallel(nn.Linear(32, 10).cuda(), device_ids=[local_rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    dataset = make_dataset()
    sampler = DistributedSampler(dataset)
    for loader in (sharded_loader(dataset, batch_size=32), any_loader(dataset, sampler)):
        for epoch in range(90):
            loader.sampler.set_epoch(epoch)
            for inputs, targets in loader:
                loss = nn.functional.cross_entropy(model(inputs.cuda()), targets.cuda())
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
