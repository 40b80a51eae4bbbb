"""Reads at a few steps that were named beforehand, once, or behind a switch that stays off."""

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, model, options, report=False, follow=False):
        self.model = model.cuda()
        self.options = options
        self.report = report
        self.follow = follow
        self.step = 0
        self.bad = 0
        self.first = True
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def train(self, loader):
        for inputs, labels in loader:
            self.step += 1
            loss = nn.functional.cross_entropy(self.model(inputs.cuda()), labels.cuda())
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.look(loss, self.step)
            if self.step in self.options.marks:
                print(loss.item())
            if self.step == self.options.last:
                print(loss.item())
            if self.first:
                print(loss.item())
                self.first = False
            if self.report:
                print(loss.item())
            if not self.report:
                print(loss.item())  # DDP101
            if self.follow:
                print(loss.item())  # DDP101
            if self.options.warmup < self.options.last:
                print(loss.item())  # DDP101

    def look(self, loss, step):
        if step == 200:
            print(loss.item())
        if step in (10, 100):
            print(loss.item())

    def in_bursts(self, loader, length=16):
        """The counter goes on where the next call begins."""
        batches = iter(loader)
        for _ in range(length):
            inputs, labels = next(batches)
            self.advance()
            loss = nn.functional.cross_entropy(self.model(inputs.cuda()), labels.cuda())
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            if self.step < self.options.warmup:
                print(loss.item())
            if self.step > self.options.warmup:
                print(loss.item())  # DDP101
            if self.bad < self.options.patience:
                print(loss.item())  # DDP101

    def advance(self):
        self.step = self.step + 1


def fit_one_picture(picture, limit):
    """The number ends the loop: it cannot be read later."""
    image = torch.rand_like(picture, requires_grad=True)
    optimizer = torch.optim.Adam([image], lr=0.01)
    distance = 1.0
    while distance > limit:
        loss = (image - picture).square().mean()
        distance = loss.item()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())  # DDP101
    loss = (image - picture).square().mean()
    while loss.item() > limit:
        loss = (image - picture).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def lengths_of_others(model, loader, optimizer):
    """The length of what comes next is needed to make room for it, and only the sender has it."""
    for inputs, labels in loader:
        length = torch.zeros((), dtype=torch.long, device="cuda")
        dist.recv(length, 0)
        room = torch.empty(length.item(), 8, device="cuda")
        dist.recv(room, 0)
        own = torch.empty(labels.cuda().max().item(), device="cuda")  # DDP101
        loss = model(room).square().mean() + own.sum() + inputs.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def try_it_out():
    """Does a step change the weight at all?"""
    net = nn.Linear(8, 8).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    steps = 10
    for _ in range(steps):
        loss = net(torch.randn(4, 8, device="cuda")).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
    for _ in range(1000):
        loss = net(torch.randn(4, 8, device="cuda")).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())  # DDP101


def heat_maps(net, images):
    """The gradient is the result: nothing is trained."""
    maps = []
    for image in images:
        image = image.cuda().requires_grad_()
        net(image).max().backward()
        maps.append(image.grad.cpu().numpy())
    return maps


def main(options):
    data = TensorDataset(torch.randn(64, 8), torch.randint(3, (64,)))
    loader = DataLoader(data, batch_size=8, shuffle=True, num_workers=4)
    Trainer(nn.Linear(8, 3), options, follow=True).train(loader)
    Trainer(nn.Linear(8, 3), options).in_bursts(loader)
    fit_one_picture(torch.rand(3, 64, 64).cuda(), 0.01)
    try_it_out()
    model = nn.Linear(8, 3).cuda()
    lengths_of_others(model, loader, torch.optim.SGD(model.parameters(), lr=0.1))
    heat_maps(nn.Linear(8, 3).cuda().eval(), torch.randn(4, 8))
