"""Its trainer clears, over a base class in another file that does not."""

import torch
from base import Base
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Tidy(Base):
    def before_step(self):
        super().before_step()
        self.clear()


def main():
    device = torch.device("cuda")
    data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
    loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4, pin_memory=True)
    model = nn.Linear(32, 10).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    trainer = Tidy(model, optimizer, device)
    for _ in range(3):
        for images, labels in loader:
            trainer.step(images, labels)


if __name__ == "__main__":
    main()
