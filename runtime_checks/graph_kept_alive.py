"""A running loss with its graph: the chain of autograd nodes grows with each step.

Counted, after each step, are the nodes that hang on the running loss; and the bytes saved for a
backward that an auxiliary loss keeps because nobody backpropagates it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch.nn.functional import cross_entropy
from torch.optim import SGD
from torch.utils.data import DataLoader

from .context import device
from .harness import Check, Seen
from .pictures import Lines
from .probes import graph_nodes, saved_tensor_bytes
from .small import make_dataset, make_model

STEPS = 10
SETTINGS = {"batch": [16, 32], "steps": STEPS}


def bad() -> Seen:
    gpu = device()
    model = make_model().to(gpu)
    optimizer = SGD(model.parameters(), lr=0.1)
    loader = DataLoader(make_dataset(16 * STEPS), batch_size=16)
    nodes, kept = [], []
    running = torch.zeros((), device=gpu)
    running_penalty = torch.zeros((), device=gpu)
    with saved_tensor_bytes() as saved:
        for inputs, targets in loader:
            outputs = model(inputs.to(gpu))
            loss = cross_entropy(outputs, targets.to(gpu))
            penalty = outputs.square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running += loss  # DDP601
            running_penalty += penalty  # DDP601
            nodes.append(graph_nodes(running))
            kept.append(saved.bytes)
    return {"nodes": nodes, "bytes": kept}


def good() -> Seen:
    gpu = device()
    model = make_model().to(gpu)
    optimizer = SGD(model.parameters(), lr=0.1)
    loader = DataLoader(make_dataset(16 * STEPS), batch_size=16)
    nodes, kept = [], []
    running = torch.zeros((), device=gpu)
    running_penalty = torch.zeros((), device=gpu)
    with saved_tensor_bytes() as saved:
        for inputs, targets in loader:
            outputs = model(inputs.to(gpu))
            loss = cross_entropy(outputs, targets.to(gpu))
            penalty = outputs.square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running += loss.detach()
            running_penalty += penalty.detach()
            nodes.append(graph_nodes(running))
            kept.append(saved.bytes)
    return {"nodes": nodes, "bytes": kept}


def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]:
    title = "autograd nodes on the running loss, more per step"
    for one in bad:
        yield Check(title, (one["nodes"][-1] - one["nodes"][0]) / (STEPS - 1), ">=", 5, of="bad")
    yield Check(title, max(max(one["nodes"]) for one in good), "==", 0, of="good")
    title = "bytes kept for a backward, more per step"
    for one in bad:
        yield Check(title, (one["bytes"][-1] - one["bytes"][0]) / (STEPS - 1), ">", 100, of="bad")
    for one in good:
        yield Check(title, (one["bytes"][-1] - one["bytes"][0]) / (STEPS - 1), "==", 0, of="good")


def picture(bad: Sequence[Seen], good: Sequence[Seen]) -> Lines:
    return Lines(
        title="Autograd nodes that hang on the running loss",
        x_label="step",
        y_label="nodes",
        x=range(STEPS),
        series={"bad": bad[0]["nodes"], "good": good[0]["nodes"]},
    )
