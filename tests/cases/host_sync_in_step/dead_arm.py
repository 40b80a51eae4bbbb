"""An argument that is an object at every call is not None: the arm for None is never taken."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Mixing:
    enabled = True

    def __call__(self, x, y):
        return (x + x.flip(0)) / 2 if self.enabled else x, y


def build(share):
    mixing = Mixing()
    mixing.enabled = share > 0
    return nn.CrossEntropyLoss(), mixing


def epoch(loader, model, criterion, mixing, optimizer, maybe=None):
    hits = 0.0
    for x, y in loader:
        x, y = x.cuda(), y.cuda()
        if mixing is not None:
            x, y = mixing(x, y)
        out = model(x)
        if mixing is None:
            hits += out.argmax(1).eq(y).float().mean().item()
        else:
            hits += out.argmax(1).ne(y).float().mean().item()  # DDP101
        if maybe is None:
            hits += out.argmax(1).ne(y).float().sum().item()  # DDP101
        loss = criterion(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return hits


def main(share):
    data = TensorDataset(torch.randn(4096, 8), torch.randint(3, (4096,)))
    loader = DataLoader(data, batch_size=32, shuffle=True, num_workers=4)
    model = nn.Linear(8, 3).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    criterion, mixing = build(share)
    for _ in range(10):
        print(epoch(loader, model, criterion, mixing, optimizer))


if __name__ == "__main__":
    main(0.5)
