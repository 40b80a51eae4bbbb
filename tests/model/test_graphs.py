"""What stays of a value that is kept with its graph: its nodes, or all activations."""

from __future__ import annotations

import pytest

from tests.model.programs import program_of

PROGRAM = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def forward(self, x):
        return x

    def loss(self, scores):
        return scores.square().mean()


def distance(scores):
    return scores.square().mean()


model = Net().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
kept = []
for (images,) in DataLoader(TensorDataset(torch.randn(64, 8))):
    scores = model(images.cuda())
    loss = {loss}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    kept.append(scores)
"""


@pytest.mark.parametrize(
    ("loss", "stays"),
    [
        ("scores.square().mean()", "nodes"),
        ("nn.functional.mse_loss(scores, images.cuda())", "nodes"),
        ("model.loss(scores)", "nodes"),
        ("distance(scores)", "nodes"),
        ("distance(scores.detach()) + model(images.cuda()).mean()", "activations"),
        ("model(images.cuda()).mean()", "activations"),
    ],
)
def test_what_a_backward_frees(loss: str, stays: str) -> None:
    found = list(program_of(PROGRAM.replace("{loss}", loss)).kept_graphs)
    assert [kept.stays for kept in found] == [stays]
