"""Layers of a list run in the forward pass that goes through the list."""

import copy

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x):
        assert (x < 100).all()  # DDP102
        return self.linear(x)


class Copied(Layer):
    def forward(self, x):
        if (x > 100).any():  # DDP102
            x = x.clamp(max=100)
        return self.linear(x)


class Numbered(Layer):
    def forward(self, x):
        if x.isnan().any():  # DDP102
            x = x.nan_to_num()
        return self.linear(x)


class Unused(Layer):
    """Stands in a list that nothing goes through."""

    def forward(self, x):
        assert (x < 100).all()
        return self.linear(x)


def clones(layer, number):
    return nn.ModuleList([copy.deepcopy(layer) for _ in range(number)])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Layer() for _ in range(4)])
        self.copied = clones(Copied(), 4)
        self.numbered = nn.ModuleList(Numbered() for _ in range(2))
        self.unused = nn.ModuleList([Unused() for _ in range(4)])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        for index, layer in enumerate(self.copied):
            x = layer(x) + index
        return self.numbered[1](self.numbered[0](x))


def main():
    data = TensorDataset(torch.randn(4096, 8))
    loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4, pin_memory=True)
    net = Net().cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for (x,) in loader:
        optimizer.zero_grad()
        net(x.cuda(non_blocking=True)).square().mean().backward()
        optimizer.step()


if __name__ == "__main__":
    main()
