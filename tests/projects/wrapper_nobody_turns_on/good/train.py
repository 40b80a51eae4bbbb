"""A trainer that could wrap its model, in a script that has only one process."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, model, local_rank=0, world_size=1):
        model = model.cuda()
        if world_size > 1:
            model = nn.parallel.DistributedDataParallel(model, device_ids=[local_rank])
        self.model = model
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def train(self, loader):
        for epoch in range(5):
            for x, y in loader:
                loss = nn.functional.cross_entropy(self.model(x.cuda()), y.cuda())
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            print("epoch", epoch)
            self.save()

    def save(self):
        torch.save(self.model.state_dict(), "best.pt")


def load():
    plain = nn.Linear(8, 3).cuda()
    plain.load_state_dict(torch.load("best.pt"), strict=False)
    return plain


if __name__ == "__main__":
    data = TensorDataset(torch.randn(64, 8), torch.randint(3, (64,)))
    loader = DataLoader(data, batch_size=8, shuffle=True, num_workers=2)
    Trainer(nn.Linear(8, 3)).train(loader)
    load()
