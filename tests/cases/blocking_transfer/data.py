import torch
from torch.utils.data import DataLoader, TensorDataset

OPTIONS = {"num_workers": 4, "pin_memory": True}


def build_loader(batch_size):
    data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
    return DataLoader(data, batch_size=batch_size, shuffle=True, **OPTIONS)
