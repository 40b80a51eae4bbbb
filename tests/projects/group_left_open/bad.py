"""Word vectors on all GPUs of a node; the script just ends."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class SkipGram(nn.Module):
    def __init__(self, words=100_000, width=200):
        super().__init__()
        self.inputs = nn.Embedding(words, width)
        self.outputs = nn.Embedding(words, width)

    def forward(self, centre, context, noise):
        centre = self.inputs(centre).unsqueeze(-1)
        near = nn.functional.logsigmoid(self.outputs(context) @ centre)
        far = nn.functional.logsigmoid(-(self.outputs(noise) @ centre))
        return -(near.mean() + far.mean())


def init_distributed():
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")  # DDP508
    return local_rank


def main():
    local_rank = init_distributed()
    windows = torch.load("windows.pt", map_location="cpu")
    dataset = TensorDataset(windows["centre"], windows["context"], windows["noise"])
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=4096, sampler=sampler, num_workers=4)
    model = DistributedDataParallel(SkipGram().cuda(), device_ids=[local_rank])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for centre, context, noise in loader:
            loss = model(centre.cuda(), context.cuda(), noise.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    if dist.get_rank() == 0:
        torch.save(model.module.inputs.weight.detach().cpu(), "vectors.pt")


if __name__ == "__main__":
    main()
