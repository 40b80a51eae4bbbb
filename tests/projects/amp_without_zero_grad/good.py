"""MNIST with mixed precision, as in the tutorial."""

import gzip
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def read_mnist(folder, name):
    with gzip.open(Path(folder) / f"{name}-images-idx3-ubyte.gz") as file:
        images = np.frombuffer(file.read(), dtype=np.uint8, offset=16).reshape(-1, 1, 28, 28)
    with gzip.open(Path(folder) / f"{name}-labels-idx1-ubyte.gz") as file:
        labels = np.frombuffer(file.read(), dtype=np.uint8, offset=8)
    return TensorDataset(
        torch.from_numpy(images / np.float32(255)), torch.from_numpy(labels.astype(np.int64))
    )


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3)
        self.conv2 = nn.Conv2d(32, 64, 3)
        self.fc = nn.Linear(9216, 10)

    def forward(self, x):
        x = torch.relu(self.conv1(x))
        x = torch.relu(self.conv2(x))
        x = nn.functional.max_pool2d(x, 2)
        return self.fc(torch.flatten(x, 1))


device = torch.device("cuda")
train_loader = DataLoader(
    read_mnist("data", "train"), batch_size=64, shuffle=True, num_workers=2, pin_memory=True
)
model = ConvNet().to(device)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adadelta(model.parameters(), lr=1.0)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.7)
scaler = torch.amp.GradScaler("cuda")

for epoch in range(14):
    model.train()
    for batch_idx, (data, target) in enumerate(train_loader):
        data = data.to(device, non_blocking=True)
        target = target.to(device, non_blocking=True)
        with torch.autocast(device_type="cuda", dtype=torch.float16):
            output = model(data)
            loss = criterion(output, target)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        if batch_idx % 100 == 0:
            print(f"epoch {epoch} [{batch_idx}/{len(train_loader)}] loss {loss.item():.6f}")
    scheduler.step()

torch.save(model.state_dict(), "mnist.pt")
