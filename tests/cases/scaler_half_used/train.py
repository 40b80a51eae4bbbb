"""Two trainers share the loop; one scales and steps plainly in the base class's file."""

import torch
from trainers import HalfTrainer, WholeTrainer
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    device = torch.device("cuda")
    data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
    loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4, pin_memory=True)
    model = nn.Linear(32, 10).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    half = HalfTrainer(model, optimizer, device)
    whole = WholeTrainer(model, optimizer, device)
    for _ in range(3):
        for images, labels in loader:
            half.train_step(images, labels)
        for images, labels in loader:
            whole.train_step(images, labels)


if __name__ == "__main__":
    main()
