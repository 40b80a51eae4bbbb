"""Which call of an evaluation is said to record a graph."""

from __future__ import annotations

from tests.model.programs import program_of

HEAD = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

loader = DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(3, (64,))), batch_size=8)
"""


def named(body: str) -> list[str]:
    return [loop.forward_text for loop in program_of(HEAD + body).recording_evaluations]


def test_a_module_without_weights_records_nothing() -> None:
    body = """
class Shift(nn.Module):
    def __init__(self, mean):
        super().__init__()
        self.mean = mean

    def forward(self, x):
        return x - self.mean

class Gap(nn.Module):
    def forward(self, scores, labels):
        return (scores.argmax(1) - labels).abs().sum()

model = nn.Linear(8, 3).cuda()
shift, gap = Shift(0.5), Gap()
model.eval()
for x, y in loader:
    print(gap(model(shift(x.cuda())), y.cuda()))
"""
    assert named(body) == ["model()"]


def test_a_forward_under_no_grad_records_nothing() -> None:
    body = """
class Best(nn.Module):
    def __init__(self):
        super().__init__()
        self.weights = nn.Parameter(torch.ones(3))

    @torch.no_grad()
    def forward(self, scores):
        return (scores * self.weights).argmax(1)

import zoo
best = Best()
net = zoo.build("small").cuda().eval()
for x, _ in loader:
    print(best(net(x.cuda())).tolist())
"""
    assert named(body) == ["net()"]


def test_what_a_module_is_made_of_may_be_handed_in() -> None:
    body = """
class Around(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x)

import zoo
model = Around(zoo.build("small")).cuda()
model.eval()
for x, _ in loader:
    print(model(x.cuda()).argmax(1).tolist())
"""
    assert named(body) == ["model()"]
