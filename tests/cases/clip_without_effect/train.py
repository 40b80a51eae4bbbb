"""The order of backward, clip and step is decided by the base class in another file."""

import torch
from base import Base
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Trainer(Base):
    def clip(self):
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)  # DDP210


def main():
    device = torch.device("cuda")
    data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
    loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4, pin_memory=True)
    model = nn.Linear(32, 10).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    trainer = Trainer(model, optimizer, device)
    for _ in range(3):
        trainer.fit(loader)


if __name__ == "__main__":
    main()
