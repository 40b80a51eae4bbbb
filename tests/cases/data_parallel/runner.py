"""One class trains a model and samples from another; the averaged copy is never trained."""

import copy
import sys

import torch
from torch import nn


def make_optimizer(name, parameters):
    if name == "adam":
        return torch.optim.Adam(parameters, lr=1e-3)
    return torch.optim.SGD(parameters, lr=0.1)


def plain_loss(model, inputs):
    return (model(inputs) - inputs).square().mean()


LOSSES = {"plain": plain_loss}


class Average:
    def __init__(self, module):
        self.shadow = {name: p.data.clone() for name, p in module.named_parameters()}

    def update(self, module):
        for name, parameter in module.named_parameters():
            self.shadow[name].lerp_(parameter.data, 0.01)

    def copied(self, module):
        whole = nn.DataParallel(copy.deepcopy(module.module))
        for name, parameter in whole.named_parameters():
            parameter.data.copy_(self.shadow[name])
        return whole


class Runner:
    def __init__(self, kind):
        self.kind = kind

    def train(self):
        model = nn.DataParallel(nn.Linear(32, 32).cuda())  # DDP510
        optimizer = make_optimizer("adam", model.parameters())
        average = Average(model)
        for _ in range(1000):
            loss = LOSSES[self.kind](model, torch.randn(256, 32, device="cuda"))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            average.update(model)
        torch.save(average.copied(model).module.state_dict(), "last.pt")

    def sample(self):
        model = nn.Linear(32, 32).cuda()
        model.load_state_dict(torch.load("last.pt", map_location="cuda"))
        model = nn.DataParallel(model)
        model.eval()
        with torch.no_grad():
            self.draw(model)

    def draw(self, model):
        drawn = torch.randn(256, 32, device="cuda")
        for _ in range(100):
            drawn = model(drawn)
        torch.save(drawn.cpu(), "drawn.pt")


runner = Runner("plain")
if sys.argv[1] == "train":
    runner.train()
else:
    runner.sample()
