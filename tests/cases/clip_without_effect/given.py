"""Gradients that are worked out and given to the parameters can be clipped before any backward."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda")
data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4)
model = nn.Linear(32, 10).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def give(gradients):
    for parameter, gradient in zip(model.parameters(), gradients, strict=True):
        parameter.grad = gradient
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()


for images, labels in loader:
    scores = model(images.to(device))
    loss = nn.functional.cross_entropy(scores, labels.to(device))
    optimizer.zero_grad()
    give(torch.autograd.grad(loss, list(model.parameters())))
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(images.to(device)), labels.to(device)).backward()
    optimizer.step()
