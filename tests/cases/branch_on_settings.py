"""What divides or weights a loss is a number, a cache that nobody passes is None, and a dict is no tensor."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(32, 10)

    def forward(self, images, cache=None):
        start = 0 if cache is None else cache.lengths[0].item()
        return self.head(images[:, start:])


def train(model, loader, optimizer, device, args, options):
    window = args.window
    for step, (images, labels) in enumerate(loader):
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        loss = nn.functional.cross_entropy(model(images), labels)
        loss *= args.weight
        loss /= window
        loss.backward()
        if options == {}:
            continue
        if (step + 1) % window == 0:
            optimizer.step()
            optimizer.zero_grad()


def main(args):
    device = torch.device("cuda")
    data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
    loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4, pin_memory=True)
    model = Net().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    train(model, loader, optimizer, device, args, {"deep": True})
