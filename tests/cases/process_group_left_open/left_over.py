"""A ``main`` that nothing calls any more: the tests have a group of their own."""

import os
import unittest

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    model = DistributedDataParallel(nn.Linear(32, 10).cuda(), device_ids=[local_rank])
    model(torch.ones(4, 32, device=local_rank)).sum().backward()
    dist.barrier()


class TestModel(unittest.TestCase):
    def test_shape(self):
        self.assertEqual(nn.Linear(32, 10)(torch.ones(4, 32)).shape, (4, 10))


if __name__ == "__main__":
    unittest.main()
