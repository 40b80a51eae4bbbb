"""Gradients that are added to a sum in full precision are cleared when they are in it."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda")
data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4)


class Sums:
    def __init__(self, model):
        self.parameters = list(model.parameters())
        self.totals = [torch.zeros_like(p, dtype=torch.float32) for p in self.parameters]

    def collect(self):
        for parameter, total in zip(self.parameters, self.totals, strict=True):
            total.add_(parameter.grad)
            parameter.grad = None

    def hand_out(self):
        for parameter, total in zip(self.parameters, self.totals, strict=True):
            parameter.grad = total.to(parameter.dtype)
            total.zero_()


def by_a_class():
    model = nn.Linear(32, 10, dtype=torch.bfloat16).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    sums = Sums(model)
    for step, (images, labels) in enumerate(loader, start=1):
        scores = model(images.to(device, torch.bfloat16))
        loss = nn.functional.cross_entropy(scores, labels.to(device)) / 4
        loss.backward()
        sums.collect()
        if step % 4 == 0:
            sums.hand_out()
            optimizer.step()


def in_a_dictionary():
    model = nn.Linear(32, 10, dtype=torch.bfloat16).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    kept = {}
    for step, (images, labels) in enumerate(loader, start=1):
        scores = model(images.to(device, torch.bfloat16))
        loss = nn.functional.cross_entropy(scores, labels.to(device)) / 4
        loss.backward()
        for name, parameter in model.named_parameters():
            kept[name] = kept.get(name, 0) + parameter.grad.float()
        optimizer.zero_grad()
        if step % 4 == 0:
            for name, parameter in model.named_parameters():
                parameter.grad = kept.pop(name).to(parameter.dtype)
            optimizer.step()


def only_scaled():
    model = nn.Linear(32, 10).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step, (images, labels) in enumerate(loader, start=1):
        optimizer.zero_grad()  # DDP205
        loss = nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
        loss.backward()
        for parameter in model.parameters():
            parameter.grad = parameter.grad / 4
            parameter.grad += 1e-4 * parameter.data
        if step % 4 == 0:
            optimizer.step()


by_a_class()
in_a_dictionary()
only_scaled()
