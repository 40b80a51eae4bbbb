"""Several wrapped parts in one model; one of them is used through a method of its inner model."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(16, 10)

    def decode_only(self, features):
        return self.layer(features)

    def forward(self, features):
        return self.layer(features).relu()


class Brain:
    def __init__(self, local_rank):
        encoder, decoder = nn.Linear(32, 16).cuda(), Decoder().cuda()
        self.distributed = dist.is_initialized()
        if self.distributed:
            encoder = DDP(encoder, device_ids=[local_rank])
            decoder = DDP(decoder, device_ids=[local_rank])
        self.modules = nn.ModuleDict({"encoder": encoder, "decoder": decoder})
        self.optimizer = torch.optim.SGD(self.modules.parameters(), lr=0.1)

    def compute_forward(self, inputs):
        features = self.modules["encoder"](inputs)
        if self.distributed:
            return self.modules["decoder"].module.decode_only(features)  # DDP503
        return self.modules["decoder"].decode_only(features)

    def fit_batch(self, inputs):
        loss = self.compute_forward(inputs).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    brain = Brain(local_rank)
    for _ in range(1000):
        brain.fit_batch(torch.randn(32, 32, device=local_rank))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
