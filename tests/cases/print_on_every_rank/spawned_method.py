"""A class method as the target of mp.spawn: the index comes after its class."""

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel


class Work:
    @classmethod
    def start(cls):
        mp.spawn(cls.work, (2, 0.1), nprocs=2)

    @classmethod
    def work(cls, index, world_size, rate):
        torch.cuda.set_device(index)
        dist.init_process_group(
            "nccl", "tcp://localhost:29500", world_size=world_size, rank=index
        )
        model = DistributedDataParallel(torch.nn.Linear(8, 8).cuda(), device_ids=[index])
        optimizer = torch.optim.SGD(model.parameters(), lr=rate)
        for step in range(1000):
            loss = model(torch.randn(4, 8).cuda()).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if index == 0 and step % 100 == 0:
                print(step)
            if world_size == 2 and step % 100 == 0:
                print(step)  # DDP509
        dist.destroy_process_group()


if __name__ == "__main__":
    Work.start()
