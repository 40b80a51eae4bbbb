"""torchrun --nproc-per-node 4 train.py, then python predict.py"""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from net import BagOfWords

CHECKPOINT = "checkpoints/sentiment.pt"


class Trainer:
    def __init__(self, model, loader, optimizer, local_rank):
        self.local_rank = local_rank
        self.model = DistributedDataParallel(model.to(local_rank), device_ids=[local_rank])
        self.loader = loader
        self.optimizer = optimizer

    def train(self, epochs):
        for epoch in range(epochs):
            self.loader.sampler.set_epoch(epoch)
            for tokens, labels in self.loader:
                tokens, labels = tokens.to(self.local_rank), labels.to(self.local_rank)
                loss = nn.functional.cross_entropy(self.model(tokens), labels)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            self.save(epoch)

    def save(self, epoch):
        if dist.get_rank() != 0:
            return
        checkpoint = {
            "epoch": epoch,
            "model": self.model.module.state_dict(),
            "optimizer": self.optimizer.state_dict(),
        }
        torch.save(checkpoint, CHECKPOINT)


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    reviews = torch.load("reviews.pt", map_location="cpu")
    dataset = TensorDataset(reviews["tokens"], reviews["labels"])
    loader = DataLoader(
        dataset, batch_size=512, sampler=DistributedSampler(dataset), num_workers=2
    )
    model = BagOfWords().cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    Trainer(model, loader, optimizer, local_rank).train(epochs=5)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
