"""With one device the wrapper calls the model as it is, and copies nothing."""

import os

import torch
from torch import nn

device = int(os.environ["DEVICE"])
model = nn.DataParallel(nn.Linear(64, 8).cuda(device), device_ids=[device], output_device=device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(1000):
    loss = model(torch.randn(256, 64, device=device)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
