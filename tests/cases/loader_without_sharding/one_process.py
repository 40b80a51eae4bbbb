"""One process drives all GPUs, in a folder full of DDP programs."""

import torch
from torch import nn
from torch.utils.data import DataLoader

from data import make_dataset


def main():
    model = nn.DataParallel(nn.Linear(32, 10).cuda())  # DDP510
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(make_dataset(), batch_size=256, shuffle=True, num_workers=4)
    for epoch in range(90):
        for inputs, targets in loader:
            loss = nn.functional.cross_entropy(model(inputs.cuda()), targets.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    main()
