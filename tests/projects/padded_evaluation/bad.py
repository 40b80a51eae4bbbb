"""News topics with a small transformer; the report is made from the gathered predictions."""

import os

import torch
import torch.distributed as dist
from sklearn.metrics import classification_report
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class Topics(nn.Module):
    def __init__(self, words=30_000, width=256, topics=20):
        super().__init__()
        self.embedding = nn.Embedding(words, width, padding_idx=0)
        layer = nn.TransformerEncoderLayer(width, 4, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(width, topics)

    def forward(self, tokens):
        return self.head(self.encoder(self.embedding(tokens)).mean(1))


def load(split):
    archive = torch.load(f"news-{split}.pt", map_location="cpu")
    return TensorDataset(archive["tokens"], archive["topics"])


def gather(tensor):
    parts = [torch.empty_like(tensor) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, tensor)
    return torch.cat(parts)


@torch.no_grad()
def test(model, loader):
    model.eval()
    predictions, truth = [], []
    for tokens, topics in loader:
        predictions.append(gather(model(tokens.cuda()).argmax(1)))
        truth.append(gather(topics.cuda()))
    model.train()
    return torch.cat(predictions).cpu(), torch.cat(truth).cpu()


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    train_set, test_set = load("train"), load("test")
    train_sampler = DistributedSampler(train_set)
    test_sampler = DistributedSampler(test_set, shuffle=False)  # DDP305
    train_loader = DataLoader(train_set, batch_size=64, sampler=train_sampler, num_workers=2)
    test_loader = DataLoader(test_set, batch_size=64, sampler=test_sampler, num_workers=2)
    model = DistributedDataParallel(Topics().cuda(), device_ids=[local_rank])
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(5):
        train_sampler.set_epoch(epoch)
        for tokens, topics in train_loader:
            loss = criterion(model(tokens.cuda()), topics.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        predictions, truth = test(model, test_loader)
        if dist.get_rank() == 0:
            print(classification_report(truth, predictions, digits=4))
    if dist.get_rank() == 0:
        torch.save(model.module.state_dict(), "topics.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
