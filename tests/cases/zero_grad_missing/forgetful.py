"""A second entry point over the same base class: nothing here clears."""

import torch
from base import Base
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Forgetful(Base):
    def describe(self):
        return f"{self.steps} steps"


def main():
    device = torch.device("cuda")
    data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
    loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4, pin_memory=True)
    model = nn.Linear(32, 10).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    trainer = Forgetful(model, optimizer, device)
    for _ in range(3):
        for images, labels in loader:  # DDP204
            trainer.step(images, labels)


if __name__ == "__main__":
    main()
