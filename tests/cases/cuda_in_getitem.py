"""CUDA tensors made by a dataset, with workers and without."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Moves(Dataset):
    def __init__(self, values):
        self.values = values

    def __len__(self):
        return len(self.values)

    def __getitem__(self, index):
        return self.values[index].cuda()  # DDP307


class MakesThere(Dataset):
    def __init__(self, device):
        self.device = device

    def __len__(self):
        return 512

    def sample(self, index):
        return torch.full((32,), float(index), device=self.device)  # DDP307

    def __getitem__(self, index):
        return self.sample(index)


class Alone(Dataset):
    """Never given to workers: the whole table lies on the GPU, and the loader is told so."""

    def __init__(self, values):
        self.values = values.cuda()

    def __len__(self):
        return len(self.values)

    def __getitem__(self, index):
        return self.values[index].to("cuda")


class OnTheHost(Dataset):
    def __init__(self, values):
        self.values = values

    def __len__(self):
        return len(self.values)

    def __getitem__(self, index):
        return self.values[index].to(torch.float32)


class Somewhere(Dataset):
    """Where the device comes from is not known; in this program it is the CPU."""

    def __init__(self, values, device):
        self.values = values
        self.device = device

    def __len__(self):
        return len(self.values)

    def __getitem__(self, index):
        return self.values[index].to(self.device)


def train(loader):
    model = nn.Linear(32, 8).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for values in loader:
        loss = model(values.cuda()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main():
    values = torch.randn(512, 32)
    train(DataLoader(Moves(values), batch_size=64, shuffle=True, num_workers=4))
    train(DataLoader(MakesThere(torch.device("cuda")), batch_size=64, num_workers=2))
    train(DataLoader(Alone(values), batch_size=64, shuffle=True, num_workers=0))
    train(DataLoader(OnTheHost(values), batch_size=64, shuffle=True, num_workers=4))
    train(DataLoader(Somewhere(values, "cpu"), batch_size=64, shuffle=True, num_workers=4))


if __name__ == "__main__":
    main()
