"""What is only warned of, and arms that no run takes."""

import logging
import warnings

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

logger = logging.getLogger(__name__)


def check(scores, names):
    hidden = [name for name in names if name.startswith("_")]
    if hidden:
        logger.warning("%s: %s", hidden, scores.mean().item())
    if len(names) < 2:
        warnings.warn(f"a name alone: {scores.mean().item()}", stacklevel=2)
    if len(names) > 2:
        logger.warning("scores: %s", scores.mean().item())  # DDP101
        names = names[:2]
    if names:
        logger.info(f"{scores.mean().item()}")  # DDP101
    logger.warning(f"{scores.mean().item()}")  # DDP101


def train(model, loader, optimizer):
    for images, labels in loader:
        scores = model(images.cuda())
        loss = nn.functional.cross_entropy(scores, labels.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        check(scores, ["cat", "dog"])
        if True:
            print(loss.item())  # DDP101
        elif len(images) > 3:
            print(loss.item())
        else:
            print(loss.item())
        if False and images is not None:
            print(loss.item())
        if 1 == 2:
            print(loss.item())
        elif not True:
            print(loss.item())
        else:
            print(loss.item())  # DDP101


data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
model = nn.Linear(32, 10).cuda()
train(
    model,
    DataLoader(data, batch_size=64, num_workers=4),
    torch.optim.SGD(model.parameters(), lr=0.1),
)
