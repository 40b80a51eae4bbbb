"""The schedule is built in one file and stepped, before the optimizer, in another."""

import torch
from schedules import own_warmup, warmup
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from work import PlainWork, WorkForOwnSchedules


def main():
    device = torch.device("cuda")
    data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
    loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4, pin_memory=True)
    model = nn.Linear(32, 10).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    plain = PlainWork(model)
    own = WorkForOwnSchedules(model)
    schedule = warmup(optimizer, 1000)
    own_schedule = own_warmup(optimizer, 1000)
    for _ in range(3):
        for images, labels in loader:
            images = images.to(device, non_blocking=True)
            labels = labels.to(device, non_blocking=True)
            loss = nn.functional.cross_entropy(model(images), labels)
            plain.step(loss, optimizer, schedule)
        for images, labels in loader:
            images = images.to(device, non_blocking=True)
            labels = labels.to(device, non_blocking=True)
            loss = nn.functional.cross_entropy(model(images), labels)
            own.step(loss, optimizer, own_schedule)


if __name__ == "__main__":
    main()
