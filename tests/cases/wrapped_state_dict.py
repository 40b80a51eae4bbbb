"""What is saved of a wrapped model, by name, by alias and as a whole."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(32, 10)

    def forward(self, inputs):
        return self.layer(inputs)


def unwrap(model):
    return model.module if hasattr(model, "module") else model


def save_state(state, path):
    if dist.get_rank() == 0:
        torch.save(state, path)


def save_model(model, path):
    if dist.get_rank() == 0:
        torch.save(model.state_dict(), path)  # DDP403


class Trainer:
    def __init__(self, model, local_rank):
        self.raw = model
        self.model = DDP(model, device_ids=[local_rank])

    def save(self):
        if dist.get_rank() == 0:
            torch.save({"model": self.model.state_dict(), "epoch": 3}, "trainer.pt")  # DDP403

    def save_raw(self):
        if dist.get_rank() == 0:
            torch.save({"model": self.raw.state_dict(), "epoch": 3}, "raw.pt")


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    net = Net().cuda()
    model = DDP(net, device_ids=[local_rank])
    model_without_ddp = model.module
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(1000):
        loss = model(torch.randn(32, 32, device=local_rank)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if dist.get_rank() == 0:
        torch.save(model.state_dict(), "plain.pt")  # DDP403
        torch.save(model, "whole.pt")  # DDP403
        torch.save(model.module.state_dict(), "module.pt")
        torch.save(model_without_ddp.state_dict(), "alias.pt")
        torch.save(net.state_dict(), "inner.pt")
        torch.save(unwrap(model).state_dict(), "helper.pt")
        torch.save(model.module.layer.state_dict(), "part.pt")
        torch.save(optimizer.state_dict(), "optimizer.pt")
        named = model.state_dict()
        stripped = {name.removeprefix("module."): value for name, value in named.items()}
        torch.save(stripped, "stripped.pt")
    weights = model.state_dict()  # DDP403
    save_state(weights, "through_name.pt")
    save_state(model.module.state_dict(), "handed.pt")
    save_model(model, "handed_model.pt")
    trainer = Trainer(Net().cuda(), local_rank)
    trainer.save()
    trainer.save_raw()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
