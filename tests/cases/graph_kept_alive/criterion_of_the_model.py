"""The loss is a method of the model, or of an object of its own, that takes the scores."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda")
data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(32, 10)

    def forward(self, x):
        return self.head(x)

    def loss(self, scores, labels):
        return nn.functional.cross_entropy(scores, labels)


class Smooth:
    def compute(self, scores, labels):
        return nn.functional.cross_entropy(scores, labels, label_smoothing=0.1)


def of_the_model():
    model = Net().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    kept = []
    for images, labels in loader:
        scores = model(images.to(device))
        loss = model.loss(scores, labels.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        kept.append(scores)  # DDP601
    return kept


def of_its_own():
    model, criterion = Net().to(device), Smooth()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    kept = []
    for images, labels in loader:
        scores = model(images.to(device))
        loss = criterion.compute(scores, labels.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        kept.append(scores)  # DDP601
    return kept


of_the_model()
of_its_own()
