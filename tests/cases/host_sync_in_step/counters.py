"""A step counter that is a buffer of a module which nobody moves: the CPU has it, unless a
checkpoint has been read.  A sum of losses in one is on the device after the first step."""

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Runner(nn.Module):
    def __init__(self, net, total):
        super().__init__()
        self.accelerator = Accelerator()
        self.register_buffer("count", torch.tensor(0))
        self.begun = torch.tensor(0)
        self.register_buffer("sum", torch.tensor(0.0))
        self.total = total
        data = TensorDataset(torch.randn(4096, 8), torch.randint(3, (4096,)))
        loader = DataLoader(data, batch_size=32, shuffle=True, num_workers=4)
        self.net, self.optimizer, self.data = self.accelerator.prepare(
            net, torch.optim.SGD(net.parameters(), lr=0.1), loader
        )

    def restore(self, step):
        self.count = torch.tensor([step + 1], device=self.accelerator.device)
        self.begun = torch.tensor(step, device=self.accelerator.device)

    def clear(self):
        self.sum = torch.zeros((), device=self.accelerator.device)

    def one(self, x, y):
        step = int(self.count.item())
        if self.begun > 100:
            x = x.flip(0)
        loss = nn.functional.cross_entropy(self.net(x), y)
        if step % 4 == 0:
            loss = loss + self.net(x).square().mean()
        self.optimizer.zero_grad()
        self.accelerator.backward(loss)
        self.optimizer.step()
        self.count.add_(1)
        self.begun += 1
        self.sum.add_(loss.detach())
        return self.sum.item()  # DDP101

    def train(self):
        while self.count < self.total:
            for x, y in self.data:
                self.one(x, y)


Runner(nn.Linear(8, 3), 10000).train()
