"""Tests of two ranks, which a runner starts on one machine: there is no second node."""

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def inputs():
    return torch.rand(2, 4, device=torch.device(f"cuda:{dist.get_rank()}"))


@pytest.fixture
def model():
    rank = dist.get_rank()
    return DistributedDataParallel(nn.Linear(4, 1).to(f"cuda:{rank}"), device_ids=[rank])


@pytest.mark.world_size(2)
def test_two_ranks_agree():
    rank = dist.get_rank()
    device = torch.device(f"cuda:{rank}")
    model = DistributedDataParallel(nn.Linear(4, 1).to(device), device_ids=[rank])
    model(inputs()).sum().backward()


class TestGradients:
    def test_they_agree(self, model):
        model(inputs()).sum().backward()
