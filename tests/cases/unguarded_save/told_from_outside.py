"""Whether an object writes is told by whoever makes it, through the variable that holds it."""

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Worker:
    def __init__(self, net):
        self.net = net
        self.chief = True
        self.writes = True
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def save(self):
        torch.save(self.net.module.state_dict(), "net.pt")

    def keep_state(self):
        torch.save(self.optimizer.state_dict(), "optimizer.pt")  # DDP401

    def run(self):
        for step in range(100):
            loss = self.net(torch.randn(8, 4, device="cuda")).square().mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            if self.chief and step % 10 == 0:
                self.save()
            if self.writes and step % 10 == 0:
                self.keep_state()


class Other:
    def __init__(self):
        self.writes = True


def entry(rank, world):
    torch.cuda.set_device(rank)
    dist.init_process_group(
        "nccl", init_method="tcp://127.0.0.1:29500", rank=rank, world_size=world
    )
    worker = Worker(DistributedDataParallel(nn.Linear(4, 4).cuda(), device_ids=[rank]))
    worker.chief = rank == 0
    other = Other()
    other.writes = rank == 0
    worker.run()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(entry, args=(2,), nprocs=2)
