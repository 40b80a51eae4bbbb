"""A tutorial without a main guard is a whole program as well; this one stays on the CPU."""

import helpers
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

data = TensorDataset(torch.randn(512, 8), torch.randn(512, 1))
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
total = 0.0
for inputs, targets in DataLoader(data, batch_size=16, shuffle=True):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(helpers.centred(inputs)), targets)
    loss.backward()
    optimizer.step()
    total += loss.item()
print(total)
