"""A sampler that is told of one process deals everything to each: nothing is a share."""

import os
import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def make_loader(ranks=1, rank=0):
    data = TensorDataset(torch.randn(101, 4), torch.randint(2, (101,)))
    return DataLoader(
        data, batch_size=8, sampler=DistributedSampler(data, num_replicas=ranks, rank=rank)
    )


def make_either(ranks, rank, evaluating):
    if evaluating:
        return make_loader(ranks, rank)
    return make_loader(ranks, rank)


def evaluate(model):
    hits = count = 0
    for x, y in make_either(1, 0, True):
        hits += int((model(x.cuda()).argmax(1) == y.cuda()).sum())
        count += len(y)
    print(hits / count)


def train():
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    model = nn.parallel.DistributedDataParallel(nn.Linear(4, 2).cuda())
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in make_loader(dist.get_world_size(), dist.get_rank()):
        opt.zero_grad()
        nn.functional.cross_entropy(model(x.cuda()), y.cuda()).backward()
        opt.step()
    with torch.no_grad():
        evaluate(model)
    dist.destroy_process_group()


train()
