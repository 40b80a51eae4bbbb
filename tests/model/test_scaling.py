"""Which scalers scale, and which are off."""

from __future__ import annotations

import pytest

from ddp_lint.model.scaling import is_scaled
from tests.model.programs import program_of


@pytest.mark.parametrize(
    ("made", "scaled"),
    [
        ("scaler = torch.amp.GradScaler('cuda')", True),
        ("scaler = torch.amp.GradScaler('cuda', enabled=args.amp)", True),
        ("scaler = torch.amp.GradScaler('cuda', enabled=False)", False),
        ("amp = False; scaler = torch.amp.GradScaler('cuda') if amp else None", False),
        ("amp = True; scaler = torch.amp.GradScaler('cuda') if amp else None", True),
        ("scaler = torch.amp.GradScaler('cuda') if Config.amp else None", True),
        ("scaler = Own()", False),
    ],
)
def test_scaled(made: str, scaled: bool) -> None:
    text = f"""
import torch
from torch import nn
from settings import args


class Config:
    amp: bool = None


class Own:
    def scale(self, value):
        return value * 2


net = nn.Linear(2, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
{made}
for batch in []:
    scaler.scale(net(batch)).backward()
    optimizer.step()
"""
    training = program_of(text).training
    (update,) = training.updates
    (backward,) = update.events("backward")
    assert is_scaled(training, backward) is scaled
