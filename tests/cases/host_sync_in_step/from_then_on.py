"""A counter that has passed a start stays behind it: what waits for that runs on every step."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, model, config):
        self.model = model.cuda()
        self.config = config
        self.steps = 0
        self.waited = 0
        self.next_log = 100
        self.total = 0.0
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def fit(self, loader):
        for inputs, labels in loader:
            self.step(inputs, labels)

    def step(self, inputs, labels):
        loss = nn.functional.cross_entropy(self.model(inputs.cuda()), labels.cuda())
        if self.steps > self.config.get("train_start_steps", 0):
            self.total += loss.item()  # DDP101
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        if self.steps > 100 and self.config["report"]:
            print(loss.item())  # DDP101
        if self.steps <= 1000:
            print(loss.item())
        else:
            print(loss.item())  # DDP101
        if self.steps > 1000 and self.steps % 100 == 0:
            print(loss.item())
        if self.steps >= self.next_log:
            print(loss.item())
            self.next_log += 100
        if self.steps >= self.config["max_steps"]:
            print(loss.item())
        self.waited += 1
        if self.waited >= self.config["patience"]:
            print(loss.item())
            self.waited = 0
        self.steps += 1
        if self.steps < self.config["warmup"]:
            return
        print(loss.item())  # DDP101


def epoch(model, loader, optimizer, start):
    for index, (inputs, labels) in enumerate(loader):
        loss = nn.functional.cross_entropy(model(inputs.cuda()), labels.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if index > 0:
            print(loss.item())  # DDP101
        if start <= index:
            print(loss.item())  # DDP101
        if start >= index:
            print(loss.item())
        if index >= len(loader) - 1:
            print(loss.item())
        if index + 1 >= start + 50:
            print(loss.item())


def main(config):
    data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
    loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4)
    Trainer(nn.Linear(32, 10), config).fit(loader)
    model = nn.Linear(32, 10).cuda()
    epoch(model, loader, torch.optim.SGD(model.parameters(), lr=0.1), config["start"])
