"""Backward inside the autocast region: a custom function's backward is cast to half precision.

The gradient of a penalty that its author keeps in float32 (autocast off in its forward) is
compared with the same gradient in float64.  Modules of torch.nn show no difference: their
backward is written for the types that their forward used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.optim import SGD
from torch.utils.data import DataLoader

from .context import device
from .harness import Check, Seen
from .small import make_dataset, make_model

SETTINGS = {"batch": [16, 32], "amp": "bfloat16"}
NOT_COVERED = ("modules of torch.nn: there the place of backward makes no difference",)


class Orthogonality(torch.autograd.Function):
    """How far the rows of a weight are from orthonormal, in float32 on purpose."""

    @staticmethod
    def forward(ctx: Any, weight: torch.Tensor) -> torch.Tensor:
        with torch.autocast(weight.device.type, enabled=False):
            excess = weight @ weight.t() - torch.eye(len(weight), device=weight.device)
        ctx.save_for_backward(weight, excess)
        return excess.square().sum()

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        weight, excess = ctx.saved_tensors
        return gradients[0] * 4 * (excess @ weight)


def bad() -> Seen:
    gpu = device()
    model = make_model().to(gpu)
    projection = make_projection()
    optimizer = SGD([*model.parameters(), projection], lr=0.1)
    loader = DataLoader(make_dataset(16), batch_size=16)
    for inputs, targets in loader:
        optimizer.zero_grad()
        with torch.autocast(gpu.type, torch.bfloat16):
            loss = cross_entropy(model(inputs.to(gpu)), targets.to(gpu))
            loss = loss + Orthogonality.apply(projection)  # type: ignore[no-untyped-call]
            loss.backward()  # DDP207
    return {"error": error_of(projection)}


def good() -> Seen:
    gpu = device()
    model = make_model().to(gpu)
    projection = make_projection()
    optimizer = SGD([*model.parameters(), projection], lr=0.1)
    loader = DataLoader(make_dataset(16), batch_size=16)
    for inputs, targets in loader:
        optimizer.zero_grad()
        with torch.autocast(gpu.type, torch.bfloat16):
            loss = cross_entropy(model(inputs.to(gpu)), targets.to(gpu))
            loss = loss + Orthogonality.apply(projection)  # type: ignore[no-untyped-call]
        loss.backward()
    return {"error": error_of(projection)}


def make_projection() -> nn.Parameter:
    torch.manual_seed(0)
    return nn.Parameter(torch.randn(16, 32).to(device()))


def error_of(weight: nn.Parameter) -> float:
    """Distance of ``weight.grad`` from the float64 gradient, as a share of the latter's norm."""
    exact = weight.detach().double().requires_grad_()
    (exact @ exact.t() - torch.eye(len(exact), device=exact.device)).square().sum().backward()
    assert weight.grad is not None
    assert exact.grad is not None
    return float((weight.grad - exact.grad).norm() / exact.grad.norm())


def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]:
    title = "relative error of the penalty's gradient"
    yield Check(title, min(one["error"] for one in bad), ">", 1e-4, of="bad")
    yield Check(title, max(one["error"] for one in good), "<", 1e-5, of="good")
